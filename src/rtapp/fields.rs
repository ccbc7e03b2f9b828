//! The members of an object, asked for by name and type.

use std::cell::RefCell;
use std::collections::HashSet;

use super::json::{Member, Node, Value};
use super::note::{Fault, Place};
use super::spelling;
use super::workload::Placed;

/// Remembers what was asked for, so that the rest can be told to the user.
pub struct Fields<'a> {
    members: &'a [Member],
    asked: RefCell<HashSet<&'static str>>,
}

impl<'a> Fields<'a> {
    pub fn of(node: &'a Node, name: &str) -> Result<Fields<'a>, Fault> {
        match &node.value {
            Value::Object(members) => Ok(Fields::new(members)),
            other => Err(mismatch(node.at, name, "an object", other)),
        }
    }

    pub fn new(members: &'a [Member]) -> Fields<'a> {
        Fields {
            members,
            asked: RefCell::default(),
        }
    }

    pub fn members(&self) -> &'a [Member] {
        self.members
    }

    /// Of several of the same name the last counts, as in json-c; null is nothing.
    pub fn get(&self, key: &'static str) -> Option<(&'a Member, &'a Node)> {
        self.asked.borrow_mut().insert(key);
        self.members
            .iter()
            .rev()
            .find(|member| member.key == key)
            .and_then(|member| Some((member, member.value.as_ref()?)))
            .filter(|(_, node)| node.value != Value::Null)
    }

    /// Everything that was asked for.
    pub fn asked(&self) -> Vec<&'static str> {
        self.asked.borrow().iter().copied().collect()
    }

    /// Refuses members that nobody asked for and that look like a slip.
    pub fn check_spelling(&self) -> Result<(), Fault> {
        spelling::check(self.unasked(), &self.asked())
    }

    /// Members nobody asked for.
    pub fn unasked(&self) -> impl Iterator<Item = &'a Member> + '_ {
        self.members
            .iter()
            .filter(|member| !self.asked.borrow().contains(member.key.as_str()))
    }

    /// Members that a later one of the same name hides, among those asked for.
    pub fn hidden(&self) -> Vec<&'a Member> {
        let asked = self.asked.borrow();
        let mut seen = HashSet::new();
        self.members
            .iter()
            .rev()
            .filter(|member| asked.contains(member.key.as_str()))
            .filter(|member| !seen.insert(member.key.as_str()))
            .collect()
    }

    pub fn int(&self, key: &'static str) -> Result<Option<Placed<i64>>, Fault> {
        self.get(key)
            .map(|(member, node)| {
                let value = int(node, key)?;
                Ok(Placed {
                    at: member.at,
                    value,
                })
            })
            .transpose()
    }

    /// A number that must not be negative.
    pub fn count(&self, key: &'static str) -> Result<Option<Placed<u64>>, Fault> {
        self.get(key)
            .map(|(member, node)| {
                let value = count(node, key)?;
                Ok(Placed {
                    at: member.at,
                    value,
                })
            })
            .transpose()
    }

    pub fn flag(&self, key: &'static str) -> Result<Option<bool>, Fault> {
        self.get(key)
            .map(|(_, node)| match &node.value {
                Value::Bool(flag) => Ok(*flag),
                other => Err(mismatch(node.at, key, "true or false", other)),
            })
            .transpose()
    }

    pub fn text(&self, key: &'static str) -> Result<Option<Placed<String>>, Fault> {
        self.get(key)
            .map(|(member, node)| {
                let value = text(node, key)?.to_owned();
                Ok(Placed {
                    at: member.at,
                    value,
                })
            })
            .transpose()
    }

    /// A list of small numbers.
    pub fn numbers(&self, key: &'static str) -> Result<Option<Placed<Vec<u32>>>, Fault> {
        let Some((member, node)) = self.get(key) else {
            return Ok(None);
        };
        let Value::List(items) = &node.value else {
            return Err(mismatch(node.at, key, "a list of numbers", &node.value));
        };
        let value = items
            .iter()
            .map(|item| match item.value {
                Value::Int(number @ 0..=9999) => Ok(number as u32),
                _ => {
                    let what = format!("{key} lists numbers from 0 to 9999");
                    Err(Fault::new(item.at, what))
                }
            })
            .collect::<Result<_, _>>()?;
        Ok(Some(Placed {
            at: member.at,
            value,
        }))
    }
}

/// A whole number as rt-app can hold it.
pub fn int(node: &Node, name: &str) -> Result<i64, Fault> {
    match node.value {
        Value::Int(value) if i32::try_from(value).is_ok() => Ok(value),
        Value::Int(_) => {
            let what = format!("{name} is beyond the 32 bits that rt-app has for it");
            Err(Fault::new(node.at, what))
        }
        ref other => Err(mismatch(node.at, name, "a whole number", other)),
    }
}

pub fn count(node: &Node, name: &str) -> Result<u64, Fault> {
    let value = int(node, name)?;
    u64::try_from(value).map_err(|_| {
        Fault::new(
            node.at,
            format!("{name} must not be negative, and is {value}"),
        )
    })
}

pub fn text<'a>(node: &'a Node, name: &str) -> Result<&'a str, Fault> {
    match &node.value {
        Value::Text(text) => Ok(text),
        other => Err(mismatch(node.at, name, "a string", other)),
    }
}

pub fn mismatch(at: Place, name: &str, wanted: &str, found: &Value) -> Fault {
    Fault::new(at, format!("{name} must be {wanted}, not {}", found.kind()))
}
