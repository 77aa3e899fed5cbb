### All texts for people in chats, in English. Each has a function of its name in `Language`, with the arguments in
### alphabetical order. `zh-Hans.ftl` has the same texts with the same arguments; the build compares them.

## Punctuation between the parts of a text.

sentence_gap = { " " }
clause_gap = { ", " }
list_gap = { ", " }

## Menus and /help: what a command does, and what stands behind it.

about_agent = List the agents, switch to one, or make one
about_bootstrap = Introduce yourself, and shape who I am
about_compact = Summarize this conversation, to make room
about_connect = Make yourself known by a code, or be one person on two platforms
about_goal = Set a goal to work towards until it is reached
about_help = Show this help
about_memory = See and change what is remembered here
about_mode = Choose what a message does while I work
about_models = List the models, or switch to one
about_new = Start a new conversation
about_retry = Ask the last question again
about_secret = Give me a secret that a skill needs, so that only its commands find it
about_skills = List the skills; /name asks for one
about_start = Say hello
about_status = Show what this conversation is at
about_stop = Stop what is being worked on
about_think = Show or choose how hard the model thinks
about_usage = Show the tokens spent here
argument_agent = [name|new name]
argument_code = [code]
argument_goal = [goal|clear]
argument_name = [name]
argument_secret = [set NAME value|delete NAME]
argument_request = [request]
help_commands = Available commands:
help_skills = Skills, each with your request behind it: { $names }
help_talk = Anything else you write is for the assistant.

## Commands in general.

command_only_in_chats = /{ $name } works in chats only.
command_unknown = Unknown command: /{ $name }.
commands_available = Available commands: { $names }
described = : { $about }
did_you_mean = Did you mean `{ $name }`?
in_use = ← in use
more = and { $count } more
no_conversation = No active conversation.
not_stored = That could not be stored just now. Try again in a moment.
with_title = { $name } ({ $title })

## /start, /connect and strangers.

goal_because = { $verdict }: { $reason }
goal_cleared = Goal cleared.
goal_exhausted = The goal is not reached yet, and I have gone on by myself as often as I may. Write to me, and I go on
goal_failed = The goal is not reached, and I cannot remove the obstacle
goal_long = A goal has { $most } characters at most.
goal_needs_you = The goal is not reached yet, and I need you for it
goal_none = No active goal. `/goal` with what you want behind it sets one: I work until it is reached.
goal_reached = Goal reached
goal_rounds = Rounds of my own since you wrote last: { $used } of { $most }
goal_stalled = The goal is not reached, and I get no further
goal_status = Goal: { $objective }
goal_unproven = Whether the goal is reached is not shown by anything
goal_waits = The goal is not reached yet: something has to happen first

hello =
    Hello, I am pudu. Send me a message to start a conversation.

    Type /help for available commands.
code_invalid = This code is not valid, or not any more. Ask your admin for a new one.
code_unreadable = I could not look that code up just now. Try again in a moment.
connect_privately = Please send me that in a private chat: anyone who reads a code could use it.
connect_offer = To be one person with yourself on another platform, send me this there, in a private chat, within ten minutes: `/connect { $code }`. You then have one memory, one set of limits and one usage on both. `/connect off` ends that.
connect_confirm = This makes you one person with { $name } on { $account }: one memory, one set of limits, one usage. What is remembered of you here moves there, and stays there if you part again; your own skills, secrets, conversations and files of here do not move. Do it only if that is you. Confirm it with the button, or by sending `{ $action }`.
connect_yes = That is me
joined = Done: here you are { $name } on { $account } now. `/connect off` ends that.
joined_already = You are one person already.
joined_by = { $name } on { $account } is one person with you now, by the code that you asked for. If that is not you, send `/connect off` here.
parted = Done: here you are a person by yourself again. What was remembered of both stays with the other.
parted_by = { $name } ended it: here you are a person by yourself again. What was remembered of both stays with them.
parted_others = Done: the person who came by your code is separate from you again. What was remembered of both stays with you.
parted_already = Here you are a person by yourself.
connected = Connected: I know you now. Say hello!
known_already = I know you already. Say hello!
stranger_by_code = I do not know you yet, so I cannot answer. Ask your admin for a code, and send me `/connect CODE`.
stranger_by_id = I do not know you yet, so I cannot answer. Ask your admin to add your id: { $id }

## /new, /stop, /retry and /compact.

conversation_started = New conversation started.
making_given_up = The agent that was being made here is not made.
compact_busy = I am still at work here. Send /compact again when I am done.
compact_disabled = Summaries are switched off here (`summarization.enabled`).
compact_failed = The model did not write a summary that I could use, so nothing has changed. Try again later.
compact_not_enough = There is not enough here to summarize yet: the newest messages stay as they are, and a summary of the others has to save 400 tokens.
thread_busy = I am still at work here. Try again when I am done.
compacted = The conversation so far is summarized: the model now reads about { $after } tokens instead of { $before }.
nothing_running = Nothing is running here.
nothing_to_retry = There is nothing to ask again yet.
stopped = Stopped.
stopped_and_dropped =
    Stopped. { $count ->
        [one] One waiting message was dropped.
       *[other] { $count } waiting messages were dropped.
    }

## /mode.

mode_interrupt = a message stops what I do and is answered at once
mode_queue = a message waits until I am done
mode_set = Mode `{ $name }`: { $about }.
mode_steer = a message reaches me while I work
mode_unknown = There is no mode `{ $name }`. Choose `queue`, `steer` or `interrupt`.
modes = What a message does while I work:

## /models.

model_in_use = This conversation now uses `{ $name }`.
model_none = none
model_unknown = There is no model `{ $name }`.
models = Available models:
models_listed = /models lists them.
models_none = No models configured.
blind_model = { $name } cannot see images; `{ $seeing }` can: `/models { $seeing }` switches to it.
blind_models = { $name } cannot see images, and neither can any other model that is configured here.

## /skills.

skill_withheld = The skill `/{ $skill }` is not available to `{ $agent }`. /skills lists those that are.
skills = Skills:
skills_none = There are no skills here.
skills_usage = Begin a message with one of them, and say behind it what you want. I also use them unasked where they fit.

## /secret.

secret_deleted = Deleted: `{ $name }`.
secret_kept = Kept: `{ $name }`. Commands of the skills that need it find it in their environment, when you ask for such a skill. The assistant itself never sees it.
secret_message_gone = I have deleted your message with it.
secret_message_local = I keep nothing of your message with it. If you typed it in a terminal, it is still on the screen and in the shell's history: clear both, and use `pudu secret set` there, which takes the value from standard input.
secret_message_stays = Your message with it is still here, and I cannot delete it: please do that yourself.
secret_missing = The skill `/{ $skill }` needs a secret: `{ $name }`. Give it to me in a private chat with `/secret set { $name } value`; until then it works without.
secret_missing_about = The skill `/{ $skill }` needs a secret: `{ $name }` ({ $about }). Give it to me in a private chat with `/secret set { $name } value`; until then it works without.
secret_missing_room = The skill `/{ $skill }` needs a secret: `{ $name }`. Secrets work in private chats only, so that nobody else in a room gets at them; here it works without.
secret_name_odd = That is no name that a secret can have: it has letters, digits and `_`, and is none that steers programs, such as PATH.
secret_privately = Secrets are a matter of a private chat. Tell me there.
secret_seen = I have not kept that: others may have read it here. Change it where it comes from, and then give me the new one in a private chat.
secret_unknown = There is no secret `{ $name }`.
secret_usage = `/secret set NAME value` keeps one, `/secret delete NAME` deletes it. I never show one.
secret_value_unsure = I have no new value for `{ $name }`, and a secret of that name is kept. If a restart came between, it may be the one that you just sent, or the one before: give it again with `/secret set { $name } value` to be sure. If your message with the value is still in this chat, delete it; `/secret` lists what is kept.
secret_value_missing = I have no value for `{ $name }`. Give it with `/secret set { $name } value`; one that a restart cut has to be given again.
secret_value_odd = A secret has 8 to 8,192 bytes, and no control characters. I have not kept this one.
secrets = Your secrets, by name:
secrets_full = There are as many secrets as I keep for one person. Delete one first.
secrets_none = You have given me no secrets.
secrets_wanted = Skills that you have need these, too:

## /usage and /memory.

memory_facts =
    Remembered here: { $count ->
        [one] one fact
       *[other] { $count } facts
    }.
memory_empty = Nothing is remembered here yet.
memory_none = Nothing like that is remembered here.
memory_usage = /memory lists what is remembered; behind it: search WORDS, add FACT, forget ID, forget all, export (as a file), last (what was used for the last answer), off, on.
memory_disabled = Your admin has switched memory off here.
memory_is_off = Memory is off: nothing is learnt and nothing is used. `/memory on` switches it on.
memory_off = Memory is off: from now on nothing is learnt, and nothing of what is remembered is used. `/memory forget all` deletes it.
memory_on = Memory is on.
memory_added = Remembered as `{ $id }`.
memory_forgotten = Forgotten.
memory_all_forgotten = Everything is forgotten.
memory_unknown = There is no fact `{ $id }`. /memory lists them.
memory_refused = That cannot be remembered: { $why }.
memory_last =
    This was used for the last answer:

    { $text }
memory_exported = Here is what is remembered.
memory_not_exported = The file could not be made. Try again later.
memory_last_none = Nothing of what is remembered was used for the last answer.
memory_unreadable = The memory could not be read.
usage =
    Tokens in this conversation: { $read } read, { $written } written, { $total } in all, in { $runs ->
        [one] one run
       *[other] { $runs } runs
    }.
think_high = hard, for difficult questions
think_levels = How hard I think before I answer, where the model can be told:
think_low = a little
think_medium = harder
think_off = not at all, which is fastest
think_on = as the model is configured
think_set = Thinking is `{ $name }` here: { $about }.
think_untold = { $name } cannot be told that by its configuration; another model of /models may be.
think_unknown = There is no `{ $name }`. /think lists what there is.
usage_cache = The provider had { $percent } % of what was read in its cache.
usage_cost = Cost: { $cost }.
usage_cost_unknown =
    The cost of { $calls ->
        [one] one call
       *[other] { $calls } calls
    } is unknown: the model has no price here.
usage_estimated =
    The usage of { $calls ->
        [one] one call
       *[other] { $calls } calls
    } is estimated: the model's provider did not tell it.
usage_caller_assistance = for suggestions
usage_caller_goal = for goals
usage_caller_lead = for answers
usage_caller_memory = for the memory
usage_caller_subagent = for sub-agents
usage_caller_summary = for summaries
usage_caller_title = for titles
usage_part = { $model }, { $caller }: { $read } read, { $written } written
usage_reasoning = Of what was written, { $tokens } were thoughts.
usage_privately = What you spent yourself and your own budgets I tell you in a private chat: send me `/usage` there.
usage_today = You today, in all your chats: { $total } tokens.
usage_unreadable = The usage could not be read just now.

## Budgets.

budget_of_run = The budget of this run
budget_of_person = Your budget
budget_of_room = The budget of this room
budget_of_account = The budget of this bot account
budget_of_everybody = The budget of everybody together
budget_of_named = The budget of { $name }
budget_tokens = { $tokens } tokens
budget_used_day = { $whose } for today is used up. It opens again at 00:00 UTC.
budget_used_month = { $whose } for this month is used up. It opens again on the first, at 00:00 UTC.
budget_used_run = The budget of this run is used up, so I stop here. Write "go on" and I continue in a new one.
budget_short_day = { $whose } for today has { $left } of { $limit } left, too little for another answer. It opens again at 00:00 UTC.
budget_short_month = { $whose } for this month has { $left } of { $limit } left, too little for another answer. It opens again on the first, at 00:00 UTC.
budget_short_run = The budget of this run has { $left } of { $limit } left, too little for another answer, so I stop here. Write "go on" and I continue in a new one.
budget_scant_day = { $whose } for today does not suffice for another answer. It opens again at 00:00 UTC.
budget_scant_month = { $whose } for this month does not suffice for another answer. It opens again on the first, at 00:00 UTC.
budget_small_day = { $whose } for today is { $limit } in all, and this answer needs about { $needs }. To wait does not help: /new starts a shorter conversation, and your admin can raise the limit ({ $key }).
budget_small_month = { $whose } for this month is { $limit } in all, and this answer needs about { $needs }. To wait does not help: /new starts a shorter conversation, and your admin can raise the limit ({ $key }).
budget_small_run = The budget of this run is { $limit } in all, and this answer needs about { $needs }. To wait does not help: /new starts a shorter conversation, and your admin can raise the limit ({ $key }).
budget_busy = { $whose } is not used up, but calls under way may spend the rest. Please try again in some minutes.
budget_near_day = { $whose } for today is { $percent } % used. It resets at 00:00 UTC.
budget_near_month = { $whose } for this month is { $percent } % used. It resets on the first, at 00:00 UTC.
budget_cheaper = From here on { $model } answers.
budget_cheaper_now = What is left is too little for the other model, so { $model } answers.
budget_lines = Budgets:
budget_line_run = Each run may spend { $limit }.
budget_line_day = { $whose } for today: { $spent } of { $limit } spent, { $left } left until 00:00 UTC.
budget_line_month = { $whose } for this month: { $spent } of { $limit } spent, { $left } left until the first of next month, 00:00 UTC.

## /status.

health_connecting = connecting
health_degraded = degraded
health_refused = credentials refused
health_ready = ready
health_stopped = stopped
state_delivering = delivering an answer
state_idle = idle
state_working = working for { $seconds } s
status_agent = Agent: `{ $name }`
status_channel = Channel: `{ $account }` is { $state }
status_channel_error = last error: { $error }
status_channel_event = last event { $seconds } s ago
status_mode = While I work: `{ $name }` ({ $about })
status_model = Model: `{ $name }`
status_standby = `{ $name }` answered last, because it could not
status_state = State: { $state }
status_thread = Active thread: `{ $thread }`
status_title = Title: { $title }
status_tokens =
    Tokens: { $total } in { $runs ->
        [one] one run
       *[other] { $runs } runs
    }
status_undelivered = Replies that could not be delivered: { $number }
status_waiting = Waiting messages: { $number }

## /agent.

agent_answers = `{ $name }` answers here from now on.
agent_answers_for = `{ $name }` answers here from now on: { $about }.
agent_answers_now = `{ $name }` answers here.
agent_being_made = { $name } (being made)
agent_broken = The agent `{ $name }` cannot be used: { $why }.
agent_broken_line = `{ $name }` answers nobody: { $why }
agent_exists = There is an agent `{ $name }` already.
agent_fixed = Your admin has fixed the agent that answers here.
agent_here = ← answers here
agent_in_making = `{ $name }` is being made here
agent_lead = the usual one
agent_name_long = `{ $name }` cannot be the name of an agent: it has more than { $most } characters.
agent_name_odd = `{ $name }` cannot be the name of an agent: it is made of letters, digits and hyphens.
agent_name_taken = `{ $name }` cannot be the name of an agent: it means something else already.
agent_not_made_here = Only the people who run this bot make agents here.
agent_unknown = There is no agent `{ $name }`.
agent_unreadable = The agent could not be read just now. Your admin finds the reason in the log.
agents = Agents:
agents_full = There are { $most } agents already; remove one first.
agents_listed = /agent lists those there are.
agents_new = `/agent new NAME` makes one.
agents_new_nameless = The new agent needs a name.
agents_new_usage = Write `/agent new NAME`, and behind it what the agent is for.
agents_switch = `/agent NAME` switches this conversation, `/agent default` back.
bootstrap_not_here = The lead agent is shared by everybody, so only this bot's approvers can shape its character.

## Buttons, and what came of them.

button_approve = Approve
button_deny = Deny
button_retry = Try again
button_stop = Stop
choice_made = ✅ { $name } chose: { $label }

## Approvals.

approval_by_others = (Only the approvers that your admin named decide that.)
approval_in_file = (The whole request comes beside this question, as a file where this chat takes one: read it first. Nobody can approve it before it is here.)
approval_late = That was decided already.
approval_not_yours = Somebody else has to decide that.
approval_over = That is over.
approval_question = 🔐 May I? { $request }
approval_unread = The whole text has not reached this chat yet: wait for it, read it and press again. You can always press Deny.
approval_unstored = I could not note that just now. Try again in a moment.
approved = ✅ { $by } approved { $request }
approved_by_nobody = ⌛ Nobody allowed { $request } in time
approved_somehow = ✅ Somebody approved { $request }
asked_whole = 📄 This is all of what I ask for.
asked_whole_link = It can be read [here]({ $link }), too.
denied = ⛔ { $by } did not allow { $request }
nobody_asked = ⛔ { $request } was not done. Only the approvers that your admin named may allow it, and they do not see this chat: ask for it in a group with one of them.

## A run at work.

running = Running { $tools }…
summarizing = Summarizing the conversation so far…
thinking = Thinking…
answer_follows = I am working on it. The answer follows.
waiting_for_decision = Waiting for your decision…
working_on = Sub-agents are at work…
todos_done = { $count } done
todos_left = 📋 { $done } of { $all } steps done. Left: { $left }
task_gap = { "; " }
task_doing = 🔹 { $task }: { $tools }
task_thinking = 🔹 { $task }: thinking…
retrying_broken = The model's answer was broken; trying again…
retrying_busy = The model is busy; trying again in { $seconds } s…
retrying_elsewhere = The model does not answer; asking another one…
retrying_failed = The model's provider failed; trying again…
retrying_limited = Rate limited by the model's provider; retrying in { $seconds } s…
retrying_resting = The model failed often and rests; trying again in { $seconds } s…
retrying_unreachable = The model cannot be reached; trying again…

## A run's end.

end_filtered = ⚠️ *The provider's content filter ended this answer. Ask in other words, or leave out what it may have taken offence at.*
end_given_up = ⚠️ I was interrupted { $times } times while I worked on this, so I stopped trying.
end_length = ⚠️ *This is as long as the model makes one answer (`max_tokens`); write "go on" and I continue.*
end_limit = ⚠️ *This took more steps than I am allowed; write "go on" and I continue.*
end_silent = (The assistant said nothing.)
end_stopped = *Stopped.*
summarized = *The conversation had become long, so I summarized its earlier part. I may have lost details of that.*
end_timeout = ⚠️ *I ran out of time; this is as far as I got.*
end_too_late = I was away for too long to answer this in time. Ask again if it still matters.

## Why a run failed.

failed_auth = The model's provider refused the key. Please tell your admin: the reason is in the log.
failed_broken = Something in me broke while I answered. Your admin finds it in the log.
failed_busy = The model is busy, and waiting did not help. Try again in a moment, or choose another model with /models.
failed_busy_long = The model is busy. Try again in { $minutes } minutes, or choose another model with /models.
failed_filtered = The provider's content filter refused this. Say it in other words, or leave out what it may have taken offence at.
failed_only_media = The model answered with an image or another file alone, and I cannot pass those on. Ask for words, or choose another model with /models.
failed_only_thought = The model's thinking used up all that one answer may have, so nothing was left to say. Ask for less at once; your admin may raise the model's `max_tokens` or let it think less.
failed_silent = The model said nothing, also when asked again. Try again, or choose another model with /models.
failed_garbled = The model's answer could not be read. Try again.
failed_history = What was said before could not be read, so I cannot answer. Send it again later.
failed_no_api = There is no model where I look for it. Please tell your admin: the model's `base_url` is wrong, which often ends in /v1; `pudu doctor` looks at it.
failed_no_model = No model is configured. Please ask your admin to add one.
failed_quota = The model's account has no credit left. Please tell your admin, or choose another model with /models.
failed_rejected = The model's provider did not accept the request, and asking again does not help. Please tell your admin: the log has the reason, which is often in the model's settings.
failed_too_long = This conversation has become too long for the model. /new starts a fresh one.
failed_unheard = What you said could not be stored. Send it again; your admin finds the reason in the log.
failed_unknown_model = The model's provider does not know this model. /models lists those to choose from; please tell your admin that its name is wrong.
failed_unreachable = The model cannot be reached. Try again in a moment, or choose another model with /models.
failed_provider = The model's provider failed ({ $status }). Try again in a moment, or choose another model with /models.
failed_cut = The connection to the model broke off. Try again in a moment, or choose another model with /models.
failed_unstored = What was said could not be stored. Your admin finds the reason in the log.

## Files that people send.

fetch_broken = ⚠️ `{ $name }` could not be kept here. Your admin finds the reason in the log.
fetch_refused = ⚠️ `{ $name }` could not be fetched: the platform refused it ({ $why }).
fetch_stopped = ⚠️ `{ $name }` was not fetched: stopped.
fetch_too_large = ⚠️ `{ $name }` could not be fetched: it is larger than { $limit }.
fetch_too_many = ⚠️ `{ $name }` was not fetched: too many files came together.
fetch_unreachable = ⚠️ `{ $name }` could not be fetched: the platform could not be reached. Send it again.
unread_broken = ⚠️ `{ $name }` could not be read: its reader broke down over it. It is damaged, or too unusual.
unread_damaged = ⚠️ `{ $name }` could not be read: it is damaged.
unread_empty = ⚠️ `{ $name }` could not be read: there is no text in it, perhaps only pictures.
unread_kind = ⚠️ `{ $name }` could not be read: it is not a document of its kind, or of a kind that I do not know.
unread_large = ⚠️ `{ $name }` could not be read: it is too large.
unread_protected = ⚠️ `{ $name }` could not be read: it is protected by a password. Send it without one.
unread_slow = ⚠️ `{ $name }` could not be read: it took too long.
unread_unavailable = ⚠️ `{ $name }` could not be read just now. Send it again later.

## Recordings, and edits that come too late.

edit_ask_again = Ask again
edit_late = ✏️ I had already taken up this message before you changed it. Press the button to ask again with the new words.
edit_late_long = ✏️ I had already taken up this message before you changed it. To ask again, send the new words as a new message.
voice_deaf = 🔇 I cannot listen to `{ $name }`: please write it.
voice_failed = 🔇 `{ $name }` could not be transcribed: { $why }.

## Files that people get.

file_gone = ⚠️ `{ $name }` could not be sent: it is not there any more.
file_large = ⚠️ `{ $name }` could not be sent: it is too large.
file_link = 📎 [{ $name }]({ $link }) (a link that is good for a day)
file_unreadable = ⚠️ `{ $name }` could not be sent: it cannot be had.
files_left = { $names } and { $count } more
files_too_many = ⚠️ No more than { $most } files go with one answer. Not sent; ask for them if you need them: { $names }
unsent = 📎 { $name } ({ $why })
unsent_empty = it is empty
unsent_failed = it could not be sent
unsent_gone = it is not there any more
unsent_large = it is larger than the { $megabytes } MB that { $platform } takes
unsent_late = it could not be sent in time
unsent_not_file = it is not a file
unsent_uncertain = it is not certain that it arrived

## What platforms add.

answer_by_number = Answer me with the number alone.
answer_refused = ⚠️ { $platform } does not take my answer.
is_thinking = is thinking…
no_text = (no text)
only_you_see = _Only you see this: I am not in this conversation. Invite me to answer for all._
press_again = Please try again in a moment.
press_unused = This button is not in use.
you = You
