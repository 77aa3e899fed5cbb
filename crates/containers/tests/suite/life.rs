//! Lifecycle of containers: adopting, identifying and replacing them.

use crate::{
    engine,
    shared::{Home, acquire, says},
};
use pudu_base::SandboxProvider;
use pudu_containers::{BoxId, ContainerEngine, DockerEngine, ExecMethod};
use pudu_sandbox::Mount;
use pudu_sim::docker::Options;
use std::time::Duration;

const IMAGE: &str = "debian:12";

fn made(sim: &pudu_sim::Docker) -> usize {
    sim.asked().iter().filter(|asked| asked.what == "POST /containers/create").count()
}

#[tokio::test]
async fn the_next_daemon_of_a_home_finds_what_the_one_before_left() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let docker = || DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Exec));
    let before = home.pool(docker());
    says(&*acquire(&before, "t").await, "sleep 7771 > /dev/null 2>&1 & echo").await;
    drop(before);
    let engine = docker();
    assert_eq!(engine.running().await.unwrap(), [BoxId::from_folder(&"t".into())]);
    let after = home.pool(engine);
    says(&*acquire(&after, "t").await, "true").await;
    assert_eq!(made(&sim), 1);
    assert!(sim.processes(&sim.running()[0]).join("\n").contains("sleep 7771"));
    after.close(Duration::from_secs(20)).await;
    assert_eq!(sim.running(), [""; 0]);
    let late = after.acquire(&"t".into()).await.err().unwrap();
    assert!(late.to_string().contains("the daemon is stopping"), "{late}");
}

#[tokio::test]
async fn another_home_on_the_same_engine_has_containers_of_its_own() {
    let Some(sim) = engine(Options::default()).await else { return };
    let (home, other) = (Home::new(), Home::new());
    let docker = |home: &Home| DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Exec));
    acquire(&home.pool(docker(&home)), "t").await;
    let foreign = docker(&other);
    assert_eq!(foreign.running().await.unwrap(), []);
    assert!(!foreign.alive(&BoxId::from_folder(&"t".into())).await);
    foreign.stop(&BoxId::from_folder(&"t".into())).await.unwrap();
    assert_eq!(sim.running().len(), 1);
    let clash = other.pool(foreign).acquire(&"t".into()).await.err().unwrap().to_string();
    assert!(clash.contains("sandbox.container_prefix"), "{clash}");
}

#[tokio::test]
async fn a_container_that_was_made_to_another_order_is_replaced() {
    let Some(sim) = engine(Options::default()).await else { return };
    let mut home = Home::new();
    let docker = || DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Exec));
    let engine = docker();
    let pool = home.pool(engine.clone());
    acquire(&pool, "t").await;
    pool.release(&"t".into()).await;
    // The next daemon has another mount.
    let folder = tempfile::tempdir().unwrap();
    let places = home.places();
    home.options.mounts =
        vec![Mount { host: folder.path().to_owned(), agent: "/mnt/more".into(), read_only: false }];
    let next = home.pool(DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Exec)));
    says(&*acquire(&next, "t").await, "test -d /mnt/more").await;
    assert_eq!((made(&sim), sim.running().len()), (2, 1));
    next.release(&"t".into()).await;
    // So does a daemon with an edited configuration, which still knows its containers.
    let mut settings = home.settings(&sim.host(), IMAGE, ExecMethod::Exec);
    settings.environment = vec![("NEW".to_owned(), "yes".to_owned())];
    let renewed =
        next.renew(std::sync::Arc::new(DockerEngine::new(settings)), places, crate::shared::rules());
    assert_eq!(says(&*acquire(&renewed, "t").await, "echo $NEW; test ! -e /mnt/more").await, "yes");
    assert_eq!((made(&sim), sim.running().len()), (3, 1));
}

#[tokio::test]
async fn a_container_that_died_is_made_anew_when_its_thread_asks() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Exec)));
    says(&*acquire(&pool, "t").await, "echo 1 > file").await;
    pool.release(&"t".into()).await;
    sim.crash(&sim.running()[0]).await;
    assert_eq!(says(&*acquire(&pool, "t").await, "cat file").await, "1");
    assert_eq!(made(&sim), 2);
}

#[tokio::test]
async fn two_who_ask_at_once_have_one_container() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Exec)));
    let all = futures_util::future::join_all((0..8).map(|_| acquire(&pool, "t"))).await;
    assert_eq!((all.len(), made(&sim)), (8, 1));
}
