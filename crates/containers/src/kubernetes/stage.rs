//! Determines the state of a Pod, and why it does not start.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// State of a Pod.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PodStage {
    /// Commands can run in the Pod.
    Running,
    /// The Pod is starting. Contains the reason for waiting.
    Waiting(String),
    /// The Pod cannot run until this problem is fixed.
    Failed(String),
    /// The Pod is being deleted.
    Leaving,
}

/// Reasons for waiting that the operator has to fix, with explanations.
const STUCK: &[(&str, &str)] = &[
    (
        "ImagePullBackOff",
        "its image cannot be pulled; check sandbox.image and sandbox.kubernetes.pull_secret",
    ),
    ("InvalidImageName", "its image has an invalid name; check sandbox.image"),
    ("ErrImageNeverPull", "its image is not on the node and must not be pulled; check sandbox.image"),
    (
        "CreateContainerConfigError",
        "it needs an object that the cluster does not have; check \
                                    sandbox.kubernetes",
    ),
    ("CreateContainerError", "its container cannot be created; check sandbox.image"),
    ("RunContainerError", "its container cannot be started; the image needs /bin/sh, check sandbox.image"),
    ("CrashLoopBackOff", "its container exits; the image needs /bin/sh and sleep, check sandbox.image"),
];

/// Returns the state of a Pod.
pub(crate) fn pod_stage(pod: &Pod) -> PodStage {
    let Some(status) = &pod.status else {
        return PodStage::Waiting("it has no status yet".to_owned());
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return PodStage::Leaving;
    }
    let words = |reason: &Option<String>, message: &Option<String>| {
        let parts = [reason.as_deref(), message.as_deref()];
        super::trouble::plain(&parts.into_iter().flatten().collect::<Vec<_>>().join(": "))
    };
    if is_over(pod) {
        return PodStage::Failed(format!("the Pod has ended ({})", words(&status.reason, &status.message)));
    }
    for container in containers(pod) {
        let state = container.state.as_ref();
        if let Some(waiting) = state.and_then(|state| state.waiting.as_ref()) {
            let said = words(&waiting.reason, &waiting.message);
            let stuck = STUCK.iter().find(|(reason, _)| waiting.reason.as_deref() == Some(reason));
            return match stuck {
                Some((_, why)) => PodStage::Failed(format!("the Pod does not start: {why} ({said})")),
                None => PodStage::Waiting(said),
            };
        }
        if state.is_some_and(|state| state.running.is_some()) && status.phase.as_deref() == Some("Running") {
            return PodStage::Running;
        }
    }
    let held = status.conditions.iter().flatten().rfind(|condition| condition.status == "False");
    let why = held.map(|condition| words(&condition.reason, &condition.message));
    PodStage::Waiting(why.unwrap_or_else(|| "it is not scheduled yet".to_owned()))
}

/// Returns whether a Pod has ended, for example because it was evicted or its node is gone.
pub(crate) fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded" | "Unknown"))
}

/// Returns whether a Pod was killed for exceeding its memory limit.
pub(crate) fn out_of_memory(pod: &Pod) -> bool {
    let ended = |container: &ContainerStatus| {
        let states = [container.state.as_ref(), container.last_state.as_ref()];
        let ends = states.into_iter().flatten().filter_map(|state| state.terminated.as_ref());
        ends.into_iter().any(|end| end.reason.as_deref() == Some("OOMKilled"))
    };
    containers(pod).any(ended)
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stage(status: &Value) -> PodStage {
        let pod = json!({"metadata": {}, "status": status});
        pod_stage(&serde_json::from_value(pod).unwrap())
    }

    fn container(state: &Value) -> Value {
        json!({"name": "sandbox", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }

    #[test]
    fn each_stage_is_derived_from_the_status() {
        let running = container(&json!({"running": {}}));
        assert_eq!(stage(&json!({"phase": "Running", "containerStatuses": [running]})), PodStage::Running);
        assert_eq!(
            stage(&json!({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
            ]})),
            PodStage::Waiting("Unschedulable: 0/1 nodes".to_owned())
        );
        let pulling = container(&json!({"waiting": {"reason": "ContainerCreating"}}));
        assert_eq!(
            stage(&json!({"phase": "Pending", "containerStatuses": [pulling]})),
            PodStage::Waiting("ContainerCreating".to_owned())
        );
        for (reason, _) in STUCK {
            let stuck = container(&json!({"waiting": {"reason": reason, "message": "why"}}));
            let PodStage::Failed(said) = stage(&json!({"phase": "Pending", "containerStatuses": [stuck]}))
            else {
                panic!("{reason}")
            };
            assert!(said.contains(reason) && said.contains("why"), "{said}");
        }
        let evicted = stage(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}));
        assert_eq!(evicted, PodStage::Failed("the Pod has ended (Evicted: low on disk)".to_owned()));
        let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
        assert_eq!(pod_stage(&serde_json::from_value(leaving).unwrap()), PodStage::Leaving);
    }

    #[test]
    fn an_out_of_memory_kill_is_found_in_the_current_and_the_last_state() {
        let ended = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        let mut again = container(&json!({"running": {}}));
        let check = |container: &Value, expect| {
            let pod =
                json!({"metadata": {}, "status": {"phase": "Running", "containerStatuses": [container]}});
            assert_eq!(out_of_memory(&serde_json::from_value(pod).unwrap()), expect);
        };
        check(&again, false);
        again["lastState"] = ended.clone();
        check(&again, true);
        check(&container(&ended), true);
    }
}
