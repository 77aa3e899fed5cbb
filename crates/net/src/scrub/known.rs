//! The known secrets: those of the process, or of a scope that a thread has entered. Tests that run several daemons in
//! one process give each a scope, so that none hides or reveals another one's secrets.

use std::{
    cell::RefCell,
    collections::{BTreeSet, VecDeque},
    sync::{Arc, PoisonError, RwLock},
};

/// The known secrets of the process or of one scope. Longer words come first, so that none is hidden only in part.
#[derive(Default)]
pub(super) struct KnownSecrets {
    pub(super) configured: BTreeSet<String>,
    pub(super) issued: VecDeque<String>,
    pub(super) personal: VecDeque<String>,
    /// Values passed to programs, secret or not.
    pub(super) given: BTreeSet<String>,
    /// Configured and issued secrets.
    pub(super) words: Arc<[String]>,
    /// The same, users' own secrets, and the values passed to programs.
    pub(super) logged: Arc<[String]>,
}

type SharedSecrets = RwLock<Option<KnownSecrets>>;

static OF_PROCESS: SharedSecrets = RwLock::new(None);

thread_local! {
    static SCOPE: RefCell<Option<SecretScope>> = const { RefCell::new(None) };
}

/// A list of known secrets that replaces the process's for the threads that enter it.
#[derive(Clone, Default)]
pub struct SecretScope(Arc<SharedSecrets>);

impl SecretScope {
    /// Makes this thread use the scope until the thread ends or enters another one.
    pub fn enter(&self) {
        SCOPE.with(|scope| scope.replace(Some(self.clone())));
    }
}

pub(super) fn learn(add: impl FnOnce(&mut KnownSecrets)) {
    with_shared(|shared| {
        let mut known = shared.write().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        add(known);
        known.sort();
    });
}

pub(super) fn known(which: fn(&KnownSecrets) -> &Arc<[String]>) -> Arc<[String]> {
    with_shared(|shared| {
        let known = shared.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|known| which(known).clone()).unwrap_or_default()
    })
}

/// Calls a function with the list for this thread. A thread that is ending may have lost its scope.
fn with_shared<T>(work: impl FnOnce(&SharedSecrets) -> T) -> T {
    let scope = SCOPE.try_with(|scope| scope.borrow().clone()).ok().flatten();
    work(scope.as_ref().map_or(&OF_PROCESS, |scope| &scope.0))
}

impl KnownSecrets {
    fn sort(&mut self) {
        let longest_first = |mut words: Vec<String>| -> Arc<[String]> {
            words.sort_by_key(|word| std::cmp::Reverse(word.len()));
            words.into()
        };
        let own: Vec<String> = self.configured.iter().chain(&self.issued).cloned().collect();
        let others = self.personal.iter().chain(&self.given);
        self.logged = longest_first(own.iter().chain(others).cloned().collect());
        self.words = longest_first(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrub::{HIDDEN, hide, remember};
    use std::thread;

    #[test]
    fn a_scope_hides_only_its_own_secrets() {
        let secret = "of-one-scope-alone-1";
        let one = SecretScope::default();
        let within = |scope: SecretScope, work: fn(&str)| {
            let entered = move || {
                scope.enter();
                work(secret);
            };
            thread::spawn(entered).join().unwrap();
        };
        within(one.clone(), |secret| remember([secret.to_owned()]));
        within(one, |secret| assert_eq!(hide(secret), HIDDEN));
        within(SecretScope::default(), |secret| assert_eq!(hide(secret), secret));
        assert_eq!(hide(secret), secret);
    }
}
