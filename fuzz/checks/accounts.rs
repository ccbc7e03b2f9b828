//! /etc/subuid and /etc/passwd, cut at the first NUL: nobody is taken for root, and nobody who
//! has a line of their own is taken for somebody else.

use scx_temponet::hint::accounts::Table;

const SOME: [u32; 8] = [1, 1000, 1001, 65534, 100_000, 165_535, 165_536, u32::MAX];

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (subuid, passwd) = text.split_once('\0').unwrap_or((&text, ""));
    let table = Table::parse(subuid, passwd);
    let fields = |line: &str| line.split(':').filter_map(|f| f.parse().ok()).collect();
    let named: Vec<u32> = subuid
        .lines()
        .flat_map(|line| -> Vec<u32> { fields(line) })
        .collect();
    for uid in SOME.into_iter().chain(named).filter(|&uid| uid != 0) {
        assert_ne!(table.account(uid), 0, "{uid} is charged to root");
    }
    for line in passwd.lines() {
        let own = line
            .split(':')
            .nth(2)
            .and_then(|field| field.parse::<u32>().ok());
        if let Some(uid) = own.filter(|&uid| uid != 0) {
            assert_eq!(table.account(uid), uid, "{line}");
        }
    }
}
