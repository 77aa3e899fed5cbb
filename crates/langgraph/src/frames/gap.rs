//! Gaps in a run's stream: the reader's position is unknown, or the events after it are gone.

use super::{
    super::{
        frame::{Frame, Position},
        steps::Steps,
    },
    Frames,
};
use pudu_base::{Seq, ThreadState};
use serde_json::{Value, json};

impl Frames {
    /// Reports that the reader's id is unknown, and that all frames are sent from the beginning.
    pub fn lost(&mut self, id: &str) {
        if self.protocol.is_some() {
            return;
        }
        let data = self.gap_data(id);
        self.frame("gap", &data);
    }

    fn gap_data(&self, requested: &str) -> Value {
        json!({
            "code": "stream_replay_gap",
            "run_id": self.run,
            "requested_event_id": requested,
            "earliest_available_event_id": self.position.to_string(),
            "latest_available_event_id": self.position.to_string(),
            "recovery": "reload_durable_state",
        })
    }

    /// Adds a gap and the thread's state after it. No frames from before `state` follow.
    pub fn gap(&mut self, requested: Position, seq: Seq, state: ThreadState, steps: Steps) {
        self.known = None;
        self.first.get_or_insert(seq);
        self.go_on_at(Position::after(seq, 0));
        let data = self.gap_data(&requested.to_string());
        self.set_state(state, steps);
        // Readers of the protocol have no event for a gap: the state follows.
        if self.protocol.is_none() {
            let left = self.modes.values.then_some(0);
            self.out.push(Frame::redacted("gap", &data, Position { left, ..self.position }));
        }
        self.send_values();
    }

    /// Adds the state after a gap, which the reader lacks.
    pub fn tell_state(&mut self) {
        self.send_values();
    }
}
