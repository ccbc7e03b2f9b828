//! JSON as rt-app's users write it.
//!
//! Beyond the standard: comments (`/* */` and `//`), trailing commas, strings in
//! single quotes, literals in any case, a key without a value (`"suspend",`), and
//! objects that keep every member in order, also those of the same name. The limits
//! are there so that no file, however broken, takes long.

use super::note::{Fault, Place};

/// The deepest nesting json-c, rt-app's own parser, follows.
const DEEPEST: usize = 32;
/// Hand-written workloads are a few kilobytes.
pub const LARGEST: usize = 4 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub at: Place,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub at: Place,
    pub key: String,
    /// `None` for a key that stands alone.
    pub value: Option<Node>,
}

impl Value {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number with a fraction",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

/// The value in the file, and where something stands behind it, if anything does.
pub fn read(text: &[u8]) -> Result<(Node, Option<Place>), Fault> {
    let mut reader = Reader {
        text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
        at: 0,
        place: Place { line: 1, column: 1 },
    };
    if text.len() > LARGEST {
        let what = format!("the file is larger than {} MiB", LARGEST >> 20);
        return Err(Fault::new(reader.place, what));
    }
    reader.skip_blanks()?;
    let node = reader.value(0)?;
    reader.skip_blanks()?;
    let behind = reader.peek().map(|_| reader.place);
    Ok((node, behind))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    place: Place,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b'\n' => {
                self.place.line += 1;
                self.place.column = 1;
            }
            // A character counts by its first byte.
            0x80..=0xbf => {}
            _ => self.place.column += 1,
        }
        Some(byte)
    }

    fn fault<T>(&self, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::new(self.place, what))
    }

    /// What stands here, for messages.
    fn found(&self) -> String {
        match self.peek() {
            None => "the file ends".into(),
            Some(byte @ 0x21..=0x7e) => format!("there is {:?}", char::from(byte)),
            Some(byte) => format!("there is the byte 0x{byte:02x}"),
        }
    }

    fn skip_blanks(&mut self) -> Result<(), Fault> {
        loop {
            match (self.peek(), self.text.get(self.at + 1)) {
                (Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c), _) => {
                    self.next();
                }
                (Some(b'/'), Some(b'/')) => while !matches!(self.next(), None | Some(b'\n')) {},
                (Some(b'/'), Some(b'*')) => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), Fault> {
        let start = self.place;
        self.next();
        self.next();
        while let Some(byte) = self.next() {
            if byte == b'*' && self.peek() == Some(b'/') {
                self.next();
                return Ok(());
            }
        }
        Err(Fault::new(start, "this comment does not end"))
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let at = self.place;
        let value = match self.peek() {
            Some(b'{' | b'[') if depth == DEEPEST => {
                return self.fault(format!("more than {DEEPEST} levels of nesting"))
            }
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"' | b'\'') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            _ => return self.fault(format!("a value is missing: {}", self.found())),
        };
        Ok(Node { at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut members = Vec::new();
        self.next();
        loop {
            self.skip_blanks()?;
            if self.peek() == Some(b'}') {
                self.next();
                return Ok(Value::Object(members));
            }
            let at = self.place;
            if !matches!(self.peek(), Some(b'"' | b'\'')) {
                return self.fault(format!(
                    "a key in quotes or }} is missing: {}",
                    self.found()
                ));
            }
            let key = self.string()?;
            self.skip_blanks()?;
            let value = match self.peek() {
                Some(b':') => {
                    self.next();
                    self.skip_blanks()?;
                    Some(self.value(depth + 1)?)
                }
                _ => None,
            };
            members.push(Member { at, key, value });
            self.end_of_item(b'}')?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        self.next();
        loop {
            self.skip_blanks()?;
            if self.peek() == Some(b']') {
                self.next();
                return Ok(Value::List(items));
            }
            items.push(self.value(depth + 1)?);
            self.end_of_item(b']')?;
        }
    }

    /// A comma, or the closing bracket, which is left where it is.
    fn end_of_item(&mut self, close: u8) -> Result<(), Fault> {
        self.skip_blanks()?;
        match self.peek() {
            Some(b',') => {
                self.next();
                Ok(())
            }
            Some(byte) if byte == close => Ok(()),
            _ => self.fault(format!(
                "a comma or {} is missing: {}",
                char::from(close),
                self.found()
            )),
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.place;
        let quote = self.next();
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                None => return Err(Fault::new(start, "this string does not end")),
                byte if byte == quote => break,
                Some(b'\\') => self.escape(&mut bytes)?,
                Some(byte) => bytes.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\'' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.next();
                let char = self.unicode()?;
                bytes.extend(char.to_string().as_bytes());
                return Ok(());
            }
            _ => return self.fault(format!("an escape is missing after \\: {}", self.found())),
        };
        self.next();
        bytes.push(plain);
        Ok(())
    }

    /// Four hexadecimal digits, twice for what needs a pair.
    fn unicode(&mut self) -> Result<char, Fault> {
        let high = self.hex()?;
        if (0xd800..0xdc00).contains(&high) && self.text[self.at..].starts_with(b"\\u") {
            self.next();
            self.next();
            let low = self.hex()?;
            let pair = 0x10000 + ((high - 0xd800) << 10) + (low & 0x3ff);
            return Ok(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            match self.peek().and_then(|byte| char::from(byte).to_digit(16)) {
                Some(digit) => code = code * 16 + digit,
                None => return self.fault("four hexadecimal digits must follow \\u"),
            }
            self.next();
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let (start, at) = (self.at, self.place);
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        ) {
            self.next();
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if let Ok(whole) = text.parse() {
            return Ok(Value::Int(whole));
        }
        match text.parse::<f64>() {
            Ok(figure) if figure.is_finite() => Ok(Value::Float(figure)),
            _ => Err(Fault::new(at, "this is not a number")),
        }
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let (start, at) = (self.at, self.place);
        while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            self.next();
        }
        match self.text[start..self.at].to_ascii_lowercase().as_slice() {
            b"true" => Ok(Value::Bool(true)),
            b"false" => Ok(Value::Bool(false)),
            b"null" => Ok(Value::Null),
            _ => Err(Fault::new(
                at,
                "words other than true, false and null need quotes",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        read(text.as_bytes()).unwrap().0.value
    }

    fn fault(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn comments_trailing_commas_and_lone_keys_are_read() {
        let text = "// head\n{ \"a\": [1, 2,], /* in * between */ \"suspend\", 'b': TRUE, }";
        let Value::Object(members) = value(text) else {
            panic!("an object");
        };
        let keys: Vec<_> = members.iter().map(|m| m.key.as_str()).collect();
        assert_eq!(keys, ["a", "suspend", "b"]);
        assert!(members[1].value.is_none());
        assert_eq!(members[2].value.as_ref().unwrap().value, Value::Bool(true));
    }

    #[test]
    fn members_of_the_same_name_are_kept_in_order() {
        let Value::Object(members) = value(r#"{"run": 1, "sleep": 2, "run": 3}"#) else {
            panic!("an object");
        };
        let values: Vec<_> = members
            .iter()
            .map(|m| m.value.clone().unwrap().value)
            .collect();
        assert_eq!(values, [Value::Int(1), Value::Int(2), Value::Int(3)]);
    }

    #[test]
    fn a_fault_names_line_and_column() {
        assert_eq!(
            fault("{\n  \"a\": }"),
            "2:8: a value is missing: there is '}'"
        );
        assert_eq!(
            fault("{ \"ä\": 1 \"b\""),
            "1:10: a comma or } is missing: there is '\"'"
        );
        assert_eq!(fault("{\n \"a"), "2:2: this string does not end");
        assert_eq!(fault("\n /* "), "2:2: this comment does not end");
        assert_eq!(fault(""), "1:1: a value is missing: the file ends");
        assert!(fault(&"[".repeat(1000)).contains("levels of nesting"));
    }

    #[test]
    fn strings_know_every_escape() {
        let text = value(r#""a\n\u0041\ud83d\ude00\ud800""#);
        assert_eq!(text, Value::Text("a\nA😀\u{fffd}".into()));
        assert!(fault(r#""\x""#).contains("escape"));
    }

    #[test]
    fn what_stands_behind_the_value_is_told() {
        let (_, behind) = read(b"{}\n}").unwrap();
        assert_eq!(behind, Some(Place { line: 2, column: 1 }));
        assert_eq!(read(b"{} // end").unwrap().1, None);
    }
}
