//! Tells systemd how far the service is (sd_notify): a datagram to a socket that it names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// It is loaded; systemd goes on with what waits for it.
pub const READY: &str = "READY=1";

/// Nothing where nobody asked to be told.
pub fn tell(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        if let Err(error) = send(&socket, state) {
            log::warn!("cannot tell systemd {state}: {error}");
        }
    }
}

/// A name that begins with @ is not in the file system.
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn systemd_is_told_at_either_kind_of_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let named = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), READY).unwrap();
        assert_eq!(received(&named), "READY=1");
        let name = format!("scx_temponet-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hidden = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STATUS=idle").unwrap();
        assert_eq!(received(&hidden), "STATUS=idle");
    }

    #[test]
    fn a_socket_that_is_not_there_is_an_error_and_no_more() {
        assert!(send(OsStr::new("/no/such/socket"), READY).is_err());
    }
}
