//! When a task is not judged: while it is moved, stopped, made real-time or limited. Excuses
//! are counted, since several may hold at once.
use crate::director::Director;

impl Director {
    pub fn excuse(&mut self, at: usize) {
        self.members[at].excuses += 1;
        self.shared.judge(self.members[at].task, false);
    }

    pub fn unexcuse(&mut self, at: usize) {
        let member = &mut self.members[at];
        member.excuses -= 1;
        member.watches = Default::default();
        self.shared.judge(member.task, member.excuses == 0);
    }

    pub fn excused<T>(&mut self, at: usize, act: impl FnOnce(&mut Director) -> T) -> T {
        self.excuse(at);
        let done = act(self);
        self.unexcuse(at);
        done
    }

    pub fn everybody_excused<T>(&mut self, act: impl FnOnce(&mut Director) -> T) -> T {
        for at in 0..self.members.len() {
            self.excuse(at);
        }
        let done = act(self);
        for at in 0..self.members.len() {
            self.unexcuse(at);
        }
        done
    }

    /// Whoever has a limit, or lives below one, may be kept waiting by it.
    pub fn note_limits(&mut self) {
        for at in 0..self.members.len() {
            let limited = self.members[at].group.is_some_and(|group| {
                let groups = &self.story.people.groups;
                (0..groups.len()).any(|g| {
                    self.quotas[g].is_some() && groups[group].path.starts_with(&groups[g].path)
                })
            });
            match (self.members[at].limited, limited) {
                (false, true) => self.excuse(at),
                (true, false) => self.unexcuse(at),
                _ => {}
            }
            self.members[at].limited = limited;
        }
    }
}
