//! Protocol buffers, as much of them as ONNX needs: numbered fields that are
//! numbers or bytes.

use thiserror::Error;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum WireError {
    #[error("it ends in the middle of a field")]
    CutOff,
    #[error("a number is longer than 64 bits")]
    LongNumber,
    #[error("field {0} has a kind that ONNX does not use")]
    Kind(u64),
    #[error("field {0} is not of the kind that ONNX says")]
    Unexpected(u32),
}

/// Messages are written into their own bytes first, since their length comes
/// before them.
#[derive(Debug, Clone, Default)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn number(mut self, field: u32, value: i64) -> Message {
        self.key(field, 0);
        self.varint(value as u64);
        self
    }

    pub fn float(mut self, field: u32, value: f32) -> Message {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(mut self, field: u32, value: &[u8]) -> Message {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub fn text(self, field: u32, value: &str) -> Message {
        self.bytes(field, value.as_bytes())
    }

    pub fn texts<'a>(self, field: u32, values: impl IntoIterator<Item = &'a str>) -> Message {
        let add = |message: Message, value| message.text(field, value);
        values.into_iter().fold(self, add)
    }

    pub fn message(self, field: u32, value: Message) -> Message {
        self.bytes(field, &value.0)
    }

    pub fn messages(self, field: u32, values: impl IntoIterator<Item = Message>) -> Message {
        let add = |message: Message, value| message.message(field, value);
        values.into_iter().fold(self, add)
    }

    pub fn numbers(self, field: u32, values: &[i64]) -> Message {
        let mut packed = Message::default();
        values.iter().for_each(|&value| packed.varint(value as u64));
        self.bytes(field, &packed.0)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.varint((field as u64) << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Number(u64),
    /// Text, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Fixed numbers, of which nothing that is read here has any.
    Fixed,
}

/// The fields of a message, in the order of its bytes. Nothing is copied.
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields(message)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(length).map_err(|_| WireError::CutOff)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(WireError::CutOff)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = (byte & 0x7f) as u64;
            if shift == 63 && bits > 1 {
                return Err(WireError::LongNumber);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::LongNumber)
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), WireError> {
        let key = self.varint()?;
        let field = u32::try_from(key >> 3).map_err(|_| WireError::Kind(key >> 3))?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(WireError::Kind(key >> 3)),
        };
        Ok((field, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Value<'a> {
    pub fn bytes(self, field: u32) -> Result<&'a [u8], WireError> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::Unexpected(field)),
        }
    }

    pub fn number(self, field: u32) -> Result<i64, WireError> {
        match self {
            Value::Number(number) => Ok(number as i64),
            _ => Err(WireError::Unexpected(field)),
        }
    }

    /// Repeated numbers: one of them, or several packed. At most `most`.
    pub fn add_numbers(self, field: u32, to: &mut Vec<i64>, most: usize) -> Result<(), WireError> {
        let mut add = |number| {
            if to.len() == most {
                return Err(WireError::Unexpected(field));
            }
            to.push(number as i64);
            Ok(())
        };
        match self {
            Value::Number(number) => add(number),
            Value::Bytes(bytes) => {
                let mut packed = Fields(bytes);
                while !packed.0.is_empty() {
                    add(packed.varint()?)?;
                }
                Ok(())
            }
            Value::Fixed => Err(WireError::Unexpected(field)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        // The examples of the protocol buffers encoding guide.
        assert_eq!(
            Message::default().number(1, 150).into_bytes(),
            [0x08, 0x96, 0x01]
        );
        let text = Message::default().text(2, "testing");
        assert_eq!(text.clone().into_bytes(), b"\x12\x07testing");
        let nested = Message::default().message(3, Message::default().number(1, 150));
        assert_eq!(nested.into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let packed = Message::default().numbers(6, &[3, 270, 86942]);
        assert_eq!(
            packed.into_bytes(),
            [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]
        );
        assert_eq!(
            Message::default().number(1, -2).into_bytes(),
            [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<i64>(), field in 1u32..1 << 29, text in ".{0,40}") {
            let bytes = Message::default().float(7, 1.5).number(field, number).text(2, &text).into_bytes();
            let fields: Vec<_> = Fields::of(&bytes).map(Result::unwrap).collect();
            assert_eq!(
                fields,
                [
                    (7, Value::Fixed),
                    (field, Value::Number(number as u64)),
                    (2, Value::Bytes(text.as_bytes())),
                ]
            );
        }

        #[test]
        fn any_bytes_end_in_fields_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let fields = Fields::of(&bytes).count();
            assert!(fields <= bytes.len());
        }
    }
}
