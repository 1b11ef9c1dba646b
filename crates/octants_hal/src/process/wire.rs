//! Messages: a length, then words and runs of bytes.

use std::io::{self, Read, Write};

use crate::error::DeviceError;

/// What a message asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(super) enum Verb {
    Allocate,
    Free,
    AllocateScratch,
    FreeScratch,
    AllocateShared,
    FreeShared,
    ReadShared,
    CopyToDevice,
    CopyToHost,
    Copy,
    Scatter,
    Fill,
    CreateStream,
    DestroyStream,
    CreateEvent,
    DestroyEvent,
    RecordEvent,
    WaitEvent,
    EventPassed,
    PollEvent,
    SynchroniseEvent,
    Elapsed,
    Synchronise,
    IsIdle,
    Poll,
    LoadModule,
    UnloadModule,
    Function,
    FunctionUsage,
    Launch,
    Properties,
}

impl Verb {
    const ALL: [Self; 31] = [
        Self::Allocate,
        Self::Free,
        Self::AllocateScratch,
        Self::FreeScratch,
        Self::AllocateShared,
        Self::FreeShared,
        Self::ReadShared,
        Self::CopyToDevice,
        Self::CopyToHost,
        Self::Copy,
        Self::Scatter,
        Self::Fill,
        Self::CreateStream,
        Self::DestroyStream,
        Self::CreateEvent,
        Self::DestroyEvent,
        Self::RecordEvent,
        Self::WaitEvent,
        Self::EventPassed,
        Self::PollEvent,
        Self::SynchroniseEvent,
        Self::Elapsed,
        Self::Synchronise,
        Self::IsIdle,
        Self::Poll,
        Self::LoadModule,
        Self::UnloadModule,
        Self::Function,
        Self::FunctionUsage,
        Self::Launch,
        Self::Properties,
    ];

    pub fn from_word(word: u64) -> io::Result<Self> {
        Self::ALL.into_iter().find(|&verb| verb as u64 == word).ok_or_else(|| broken("an unknown verb"))
    }
}

pub(super) fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A message being written.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub fn word(&mut self, word: u64) -> &mut Self {
        self.0.extend_from_slice(&word.to_le_bytes());
        self
    }

    pub fn words(&mut self, words: &[u64]) -> &mut Self {
        self.word(words.len() as u64);
        for &word in words {
            self.word(word);
        }
        self
    }

    /// An optional word.
    pub fn option(&mut self, word: Option<u64>) -> &mut Self {
        self.word(word.is_some().into()).word(word.unwrap_or(0))
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.word(bytes.len() as u64).0.extend_from_slice(bytes);
        self
    }

    pub fn send(&self, channel: &mut impl Write) -> io::Result<()> {
        channel.write_all(&(self.0.len() as u64).to_le_bytes())?;
        channel.write_all(&self.0)
    }
}

/// A message being read.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(bytes).ok_or_else(|| broken("a message that is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn word(&mut self) -> io::Result<u64> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    pub fn words(&mut self) -> io::Result<Vec<u64>> {
        (0..self.word()?).map(|_| self.word()).collect()
    }

    pub fn option(&mut self) -> io::Result<Option<u64>> {
        let (some, word) = (self.word()? != 0, self.word()?);
        Ok(some.then_some(word))
    }

    pub fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = self.word()? as usize;
        self.take(length)
    }

    pub fn text(&mut self) -> io::Result<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// The next message; `None` if the other side is gone.
pub(super) fn receive(channel: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    match channel.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut message = vec![0; u64::from_le_bytes(length) as usize];
    channel.read_exact(&mut message)?;
    Ok(Some(message))
}

/// An answer begins with what became of the verb.
pub(super) fn write_outcome(answer: &mut Writer, outcome: Result<(), DeviceError>) {
    match outcome {
        Ok(()) => answer.word(0),
        Err(DeviceError::OutOfMemory { bytes }) => answer.word(1).word(bytes as u64),
        Err(DeviceError::Unsupported { .. }) => answer.word(2),
        Err(DeviceError::BadImage { message }) => answer.word(3).bytes(message.as_bytes()),
        Err(DeviceError::Failed { message, .. }) => answer.word(4).bytes(message.as_bytes()),
        Err(DeviceError::Lost { message }) => answer.word(5).bytes(message.as_bytes()),
        Err(DeviceError::TooLarge { message }) => answer.word(6).bytes(message.as_bytes()),
    };
}

/// What became of the verb of this name.
pub(super) fn read_outcome(
    answer: &mut Reader<'_>,
    verb: &'static str,
) -> io::Result<Result<(), DeviceError>> {
    Ok(Err(match answer.word()? {
        0 => return Ok(Ok(())),
        1 => DeviceError::OutOfMemory { bytes: answer.word()? as usize },
        2 => DeviceError::Unsupported { verb },
        3 => DeviceError::BadImage { message: answer.text()? },
        4 => DeviceError::Failed { verb, message: answer.text()? },
        5 => DeviceError::Lost { message: answer.text()? },
        6 => DeviceError::TooLarge { message: answer.text()? },
        _ => return Err(broken("an unknown outcome")),
    }))
}
