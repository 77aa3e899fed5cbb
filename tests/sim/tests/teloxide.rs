//! Every result can be decoded by teloxide, whose types are strict, and every error is the expected one.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it says")]

use pudu_sim::{
    Telegram,
    telegram::{Call, Fault, Kind, MessageId, Options, Outcome, Post, Upload, When},
};
use std::time::Duration;
use teloxide_core::{
    ApiError, Bot, RequestError,
    net::Download,
    prelude::*,
    types::{
        AllowedUpdate, BotCommand, CallbackQueryId, ChatAction, ChatId, FileId, InlineKeyboardButton,
        InlineKeyboardMarkup, InputFile, LinkPreviewOptions, MessageEntityKind, MessageId as Id, ParseMode,
        ReactionType, ReplyParameters, ThreadId, UpdateKind,
    },
};

const SOON: Duration = Duration::from_secs(10);

async fn server() -> (Telegram, Bot) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let telegram = Telegram::start(Options::default()).await.unwrap();
    let bot = Bot::new(telegram.token()).set_api_url(telegram.url().parse().unwrap());
    (telegram, bot)
}

fn api(error: RequestError) -> ApiError {
    match error {
        RequestError::Api(error) => error,
        other => panic!("{other:?}"),
    }
}

fn id(message: MessageId) -> Id {
    Id(message.0.try_into().unwrap())
}

#[tokio::test]
async fn the_bot_knows_itself_its_commands_and_its_chats() {
    let (telegram, bot) = server().await;
    let ada = telegram.add_person("Ada", Some("ada"));
    let me = bot.get_me().await.unwrap();
    assert_eq!((me.username(), me.can_read_all_group_messages), ("pudu_bot", true));
    let commands = vec![BotCommand::new("new", "start over")];
    bot.set_my_commands(commands.clone()).await.unwrap();
    assert_eq!(bot.get_my_commands().await.unwrap(), commands);
    assert_eq!(bot.get_webhook_info().await.unwrap().url, None);
    bot.delete_webhook().await.unwrap();
    for kind in [Kind::Group, Kind::Supergroup, Kind::Forum] {
        let group = telegram.add_group(kind, "Deer", &[ada]);
        let full = bot.get_chat(ChatId(group.0)).await.unwrap();
        assert_eq!((full.title(), full.is_supergroup()), (Some("Deer"), kind != Kind::Group));
    }
    assert!(bot.get_chat(ChatId(ada.0)).await.unwrap().is_private());
}

#[tokio::test]
async fn everything_that_people_do_decodes() {
    let (telegram, bot) = server().await;
    let ada = telegram.add_person("Ada", Some("ada"));
    let chat = telegram.private(ada);
    let group = telegram.add_group(Kind::Group, "Deer", &[ada]);
    let forum = telegram.add_group(Kind::Forum, "Forest", &[ada]);
    let first = telegram.say(chat, ada, "/new@pudu_bot hi @pudu_bot see https://a.example/x #deer").unwrap();
    telegram.edit(chat, first, "other").unwrap();
    telegram.post(chat, ada, &Post::text("re").reply_to(first)).unwrap();
    let topic = telegram.open_topic(forum, "Antlers").unwrap();
    telegram.post(forum, ada, &Post::text("in topic").topic(topic)).unwrap();
    let picture = Upload::photo(vec![0; 9]);
    let album = Post::text("two").file(picture).file(Upload::document("a.txt", "text/plain", "hello"));
    telegram.post(group, ada, &album).unwrap();
    telegram.migrate(group).unwrap();
    let question = bot
        .send_message(ChatId(chat.0), "sure?")
        .reply_markup(InlineKeyboardMarkup::new([[InlineKeyboardButton::callback("Yes", "y")]]))
        .await
        .unwrap();
    telegram.press(chat, ada, MessageId(question.id.0.into()), "Yes").unwrap();

    let updates = bot.get_updates().timeout(0).allowed_updates([AllowedUpdate::Message]).await.unwrap();
    let kinds: Vec<_> = updates.iter().map(|update| kind(&update.kind)).collect();
    let album = ["photo", "document"];
    let rest = ["migrated", "migrated", "callback"];
    let expected = ["text", "edited", "text", "topic", "text"].into_iter().chain(album).chain(rest);
    assert_eq!(kinds, expected.collect::<Vec<_>>());
    let UpdateKind::Message(first) = &updates[0].kind else { panic!() };
    let entities: Vec<_> = first.entities().unwrap().iter().map(|entity| entity.kind.clone()).collect();
    let found = [
        MessageEntityKind::BotCommand,
        MessageEntityKind::Mention,
        MessageEntityKind::Url,
        MessageEntityKind::Hashtag,
    ];
    assert_eq!(entities, found);
    let UpdateKind::Message(in_topic) = &updates[4].kind else { panic!() };
    assert_eq!((in_topic.thread_id, in_topic.is_topic_message), (Some(ThreadId(id(topic))), true));
}

fn kind(kind: &UpdateKind) -> &'static str {
    match kind {
        UpdateKind::EditedMessage(_) => "edited",
        UpdateKind::CallbackQuery(_) => "callback",
        UpdateKind::Message(message) if message.text().is_some() => "text",
        UpdateKind::Message(message) if message.photo().is_some() => "photo",
        UpdateKind::Message(message) if message.document().is_some() => "document",
        UpdateKind::Message(message) if message.forum_topic_created().is_some() => "topic",
        UpdateKind::Message(message)
            if message.migrate_to_chat_id().is_some() || message.migrate_from_chat_id().is_some() =>
        {
            "migrated"
        }
        _ => "unknown",
    }
}

#[tokio::test]
async fn everything_that_the_bot_does_decodes_and_is_seen() {
    let (telegram, bot) = server().await;
    let ada = telegram.add_person("Ada", None);
    let chat = telegram.private(ada);
    let to = ChatId(chat.0);
    let asked = telegram.say(chat, ada, "hi").unwrap();
    bot.send_chat_action(to, ChatAction::Typing).await.unwrap();
    let preview_off = LinkPreviewOptions {
        is_disabled: true,
        url: None,
        prefer_small_media: false,
        prefer_large_media: false,
        show_above_text: false,
    };
    let sent = bot
        .send_message(to, "<b>bold</b> &amp; <pre><code class=\"language-rust\">fn</code></pre>")
        .parse_mode(ParseMode::Html)
        .reply_parameters(ReplyParameters::new(id(asked)).allow_sending_without_reply())
        .link_preview_options(preview_off)
        .await
        .unwrap();
    assert_eq!(sent.text(), Some("bold & fn"));
    let edited = bot.edit_message_text(to, sent.id, "edited").await.unwrap();
    assert!(edited.edit_date().is_some());
    let buttons = InlineKeyboardMarkup::new([[InlineKeyboardButton::callback("Yes", "y")]]);
    bot.edit_message_reply_markup(to, sent.id).reply_markup(buttons).await.unwrap();
    let reaction = ReactionType::Emoji { emoji: "👀".to_owned() };
    bot.set_message_reaction(to, id(asked)).reaction([reaction]).await.unwrap();
    let press = telegram.press(chat, ada, MessageId(sent.id.0.into()), "y").unwrap();
    bot.answer_callback_query(CallbackQueryId(press)).text("ok").await.unwrap();
    let document = InputFile::memory("hello").file_name("a.txt");
    let document = bot.send_document(to, document).caption("a file").await.unwrap();
    let photo = bot.send_photo(to, InputFile::memory(&b"\x89PNG\r\n\x1a\n...."[..])).await.unwrap();
    assert_eq!(document.document().unwrap().file_name.as_deref(), Some("a.txt"));
    assert_eq!(photo.photo().unwrap().len(), 2);
    let again = bot
        .send_document(to, InputFile::file_id(document.document().unwrap().file.id.clone()))
        .await
        .unwrap();
    bot.delete_message(to, again.id).await.unwrap();
    let mut got = Vec::new();
    let file = bot.get_file(document.document().unwrap().file.id.clone()).await.unwrap();
    bot.download_file(&file.path, &mut got).await.unwrap();
    assert_eq!(got, b"hello");
    telegram.fail_next("download", Fault::CutBefore);
    bot.download_file(&file.path, &mut got).await.unwrap_err();
    assert_eq!(telegram.count("download"), 2);

    let seen = telegram.transcript(chat);
    let texts: Vec<_> =
        seen.iter().map(|seen| (seen.text.as_str(), seen.edited, seen.file.is_some())).collect();
    assert_eq!(
        texts,
        [("hi", false, false), ("edited", true, false), ("a file", false, true), ("", false, true)]
    );
    assert_eq!((seen[0].reactions.as_slice(), seen[1].reply_to), (&["👀".to_owned()][..], Some(asked)));
}

#[tokio::test]
async fn every_refusal_is_the_error_that_it_means() {
    let (telegram, bot) = server().await;
    let ada = telegram.add_person("Ada", None);
    let chat = telegram.private(ada);
    let to = ChatId(chat.0);
    let theirs = telegram.say(chat, ada, "hi").unwrap();
    let own = bot.send_message(to, "one").await.unwrap().id;
    let edit =
        async |message: Id, text: &str| api(bot.edit_message_text(to, message, text).await.unwrap_err());
    assert_eq!(edit(own, "one").await, ApiError::MessageNotModified);
    assert_eq!(edit(Id(99), "x").await, ApiError::MessageToEditNotFound);
    assert_eq!(edit(id(theirs), "x").await, ApiError::MessageCantBeEdited);
    assert_eq!(edit(own, &"x".repeat(4097)).await, ApiError::EditedMessageIsTooLong);
    let send =
        async |text: &str| api(bot.send_message(to, text).parse_mode(ParseMode::Html).await.unwrap_err());
    assert_eq!(send(&"x".repeat(4097)).await, ApiError::MessageIsTooLong);
    assert_eq!(send("").await, ApiError::MessageTextIsEmpty);
    assert!(matches!(send("<p>").await, ApiError::CantParseEntities(_)));
    let reply = bot.send_message(to, "x").reply_parameters(ReplyParameters::new(Id(99))).await;
    assert_eq!(api(reply.unwrap_err()), ApiError::MessageToReplyNotFound);
    let delete = bot.delete_message(to, Id(99)).await;
    assert_eq!(api(delete.unwrap_err()), ApiError::MessageToDeleteNotFound);
    let nobody = bot.send_message(ChatId(5), "x").await;
    assert_eq!(api(nobody.unwrap_err()), ApiError::ChatNotFound);
    let nothing = api(bot.get_file(FileId("nonsense".to_owned())).await.unwrap_err());
    let why = "Bad Request: wrong file_id or the file is temporarily unavailable";
    assert_eq!(nothing, ApiError::Unknown(why.to_owned()));
    telegram.block(ada).unwrap();
    assert_eq!(api(bot.send_message(to, "x").await.unwrap_err()), ApiError::BotBlocked);
    let stranger = Bot::new("1:wrong").set_api_url(telegram.url().parse().unwrap());
    assert_eq!(api(stranger.get_me().await.unwrap_err()), ApiError::InvalidToken);
}

#[tokio::test]
async fn faults_reach_the_client_as_what_they_are() {
    let (telegram, bot) = server().await;
    let ada = telegram.add_person("Ada", None);
    let chat = telegram.private(ada);
    let send = async |text: &str| bot.send_message(ChatId(chat.0), text).await;
    telegram.fail_next("sendMessage", Fault::TooMany(7));
    assert!(matches!(send("a").await, Err(RequestError::RetryAfter(wait)) if wait.seconds() == 7));
    // No 5xx here: teloxide sleeps ten seconds before it returns one.
    for (fault, done) in [(Fault::CutBefore, false), (Fault::CutAfter, true), (Fault::Garbage, true)] {
        let text = format!("{fault:?}");
        telegram.fail_next("sendMessage", fault);
        send(&text).await.unwrap_err();
        let seen = telegram.look(|view| view.last_answer(chat) == Some(text.as_str()));
        assert_eq!(seen, done, "{text}");
    }
}

#[tokio::test]
async fn a_poll_whose_client_went_away_takes_nothing_with_it() {
    let (telegram, bot) = server().await;
    let ada = telegram.add_person("Ada", None);
    let poll = tokio::spawn(bot.get_updates().timeout(10).send());
    telegram.wait(SOON, |view| (view.count("getUpdates") == 1).then_some(())).await.unwrap();
    poll.abort();
    let gone = |call: &Call| call.outcome == Outcome::Abandoned;
    telegram.wait(SOON, |view| view.calls().any(gone).then_some(())).await.unwrap();
    telegram.say(telegram.private(ada), ada, "hi").unwrap();
    assert_eq!(bot.get_updates().timeout(0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_held_after_its_effect_is_seen_while_its_answer_is_withheld() {
    let (telegram, bot) = server().await;
    let ada = telegram.add_person("Ada", None);
    let chat = telegram.private(ada);
    let mut hold = telegram.hold("sendMessage", 1, When::After);
    let sending = tokio::spawn(bot.send_message(ChatId(chat.0), "one").send());
    assert!(hold.reached().await.is_some());
    telegram.wait_answer(chat, "one", SOON).await.unwrap();
    assert!(!sending.is_finished());
    hold.proceed();
    assert_eq!(sending.await.unwrap().unwrap().text(), Some("one"));
}
