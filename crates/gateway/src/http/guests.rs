//! Connections whose caller is not authenticated. Such a guest keeps its place only until another client needs it. A
//! client with many silent connections therefore shuts out only itself.

use super::failures::network;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio_util::sync::CancellationToken;

/// The open connections.
#[derive(Clone)]
pub(crate) struct Guests {
    all: Arc<Mutex<GuestBook>>,
    /// Maximum number of unproven connections from one address.
    share: usize,
}

/// Connections in order of arrival.
#[derive(Default)]
struct GuestBook {
    next: u64,
    guests: BTreeMap<u64, Stay>,
}

struct Stay {
    from: IpAddr,
    proved: Arc<AtomicBool>,
    leave: CancellationToken,
}

/// Records whether a connection's requests have proved their caller.
#[derive(Clone)]
pub(crate) struct Visitor(Arc<AtomicBool>);

impl Visitor {
    /// Records that the connection belongs to an admitted caller.
    pub(crate) fn prove(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An open connection; removed from the list on drop.
pub(crate) struct Guest {
    all: Arc<Mutex<GuestBook>>,
    number: u64,
    leave: CancellationToken,
}

impl Guest {
    /// Returns the token that is cancelled when another connection needs the place.
    pub(crate) fn asked_to_leave(&self) -> &CancellationToken {
        &self.leave
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).guests.remove(&self.number);
    }
}

impl Guests {
    /// Creates the list, with a limit for the connections of one address.
    pub(crate) fn new(share: usize) -> Self {
        Self { all: Arc::default(), share }
    }

    /// Adds a new connection.
    pub(crate) fn enter(&self, from: IpAddr) -> (Visitor, Guest) {
        let (proved, leave) = (Arc::<AtomicBool>::default(), CancellationToken::new());
        let mut book = self.lock();
        let number = book.next;
        book.next += 1;
        book.guests.insert(
            number,
            Stay { from: network(from.to_canonical()), proved: proved.clone(), leave: leave.clone() },
        );
        (Visitor(proved), Guest { all: self.all.clone(), number, leave })
    }

    /// Closes the oldest unproven connection of an address that has reached its limit, to make room for its next one.
    pub(crate) fn keep_share(&self, from: IpAddr) {
        let (book, from) = (self.lock(), network(from.to_canonical()));
        let mut own = book.unproved().filter(|entry| entry.from == from);
        let first = own.next();
        if let Some(first) = first.filter(|_| own.count() + 1 >= self.share) {
            first.leave.cancel();
        }
    }

    /// Closes the oldest unproven connection of the address with the most such connections. Returns whether there was
    /// one.
    pub(crate) fn send_one_away(&self) -> bool {
        let book = self.lock();
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for entry in book.unproved() {
            *counts.entry(entry.from).or_default() += 1;
        }
        let largest = counts.into_iter().max_by_key(|(_, count)| *count);
        let first = largest.and_then(|(from, _)| book.unproved().find(|entry| entry.from == from));
        first.inspect(|entry| entry.leave.cancel()).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, GuestBook> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuestBook {
    fn unproved(&self) -> impl Iterator<Item = &Stay> {
        let open = |entry: &&Stay| !entry.proved.load(Ordering::Relaxed) && !entry.leave.is_cancelled();
        self.guests.values().filter(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(guests: &[(Visitor, Guest)]) -> Vec<usize> {
        let left_index =
            |(index, (_, guest)): (usize, &(Visitor, Guest))| guest.leave.is_cancelled().then_some(index);
        guests.iter().enumerate().filter_map(left_index).collect()
    }

    #[test]
    fn the_oldest_unproven_connection_of_the_busiest_address_closes_first() {
        let all = Guests::new(3);
        let [one, two] = ["2001:db8::1", "192.0.2.1"].map(|address| address.parse().unwrap());
        let same_network = "2001:db8::2".parse().unwrap();
        let guests: Vec<_> = [two, one, same_network, two, one].map(|from| all.enter(from)).into();
        guests[1].0.prove();
        assert!(all.send_one_away());
        // Both addresses have two unproven connections: the first one of each address is closed.
        assert_eq!(gone(&guests).len(), 1);
        while all.send_one_away() {}
        assert_eq!(gone(&guests), [0, 2, 3, 4]);
        drop(guests);
        assert!(all.lock().guests.is_empty());
    }

    #[test]
    fn unproven_connections_of_one_address_are_limited() {
        let all = Guests::new(3);
        let from = "192.0.2.1".parse().unwrap();
        let guests: Vec<_> = (0..5)
            .map(|_| {
                all.keep_share(from);
                all.enter(from)
            })
            .collect();
        assert_eq!(gone(&guests), [0, 1]);
        all.keep_share("192.0.2.2".parse().unwrap());
        assert_eq!(gone(&guests), [0, 1]);
    }
}
