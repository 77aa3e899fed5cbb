### 聊天中展示给用户的全部文案，简体中文。文案名与参数须与 `en.ftl` 完全一致，构建时会检查。

## 各部分之间的标点。

sentence_gap = { "" }
clause_gap = ，
list_gap = 、

## 命令菜单与 /help。

about_agent = 查看、切换或创建智能体
about_bootstrap = 介绍您自己，并塑造我的性格
about_compact = 总结本对话，腾出空间
about_connect = 用配对码绑定身份，或把两个平台上的你认作同一个人
about_goal = 设定一个目标，我会一直工作到达成为止
about_help = 查看帮助
about_memory = 查看和修改这里的记忆
about_mode = 设置我工作时如何处理新消息
about_models = 查看或切换模型
about_new = 开始新对话
about_retry = 重新回答上一个问题
about_schedule = 查看和修改你的定时任务
about_secret = 交给我技能需要的密钥，只有技能的命令能用到
about_skills = 查看技能，用 /技能名 调用
about_start = 打个招呼
about_status = 查看当前对话的状态
about_stop = 停止正在进行的任务
about_think = 查看或选择模型的思考程度
about_usage = 查看本对话的 token 用量
argument_agent = [名称|new 名称]
argument_code = [配对码]
argument_goal = [目标|clear]
argument_name = [名称]
argument_schedule = [pause|resume|run|delete 名称]
argument_secret = [set 名称 值|delete 名称]
argument_request = [需求]
help_commands = 可用命令：
help_skills = 技能（后面写上你的需求）：{ $names }
help_prompts = MCP 服务器的提示词（后面写上参数）：{ $names }
help_talk = 其他消息会直接交给助手处理。

## 命令通用。

command_only_in_chats = /{ $name } 只能在聊天中使用。
command_takes_no_argument = /{ $name } 不带参数，请单独发送这条命令。
command_unknown = 未知命令：/{ $name }。
commands_available = 可用命令：{ $names }
described = ：{ $about }
did_you_mean = 你是想用 `{ $name }` 吗？
in_use = ← 使用中
more = 还有 { $count } 个
no_conversation = 当前没有进行中的对话。
not_stored = 暂时没能保存，请稍后再试。
with_title = { $name }（{ $title }）

## /start、/connect 与陌生人。

goal_because = { $verdict }：{ $reason }
goal_cleared = 目标已清除。
goal_exhausted = 目标尚未达成，而我自行继续的次数已用完；给我发消息，我就继续
goal_failed = 目标未达成，阻碍它的问题我无法解决
goal_long = 目标最多 { $most } 个字符。
goal_needs_you = 目标尚未达成，需要您的帮助
goal_none = 当前没有目标。在 `/goal` 后面写上您想要的结果即可设定：我会一直工作到达成为止。
goal_not_set = 当前没有可清除的目标。
goal_reached = 目标已达成
goal_rounds = 自您上次发消息以来我自行继续的次数：{ $used }/{ $most }
goal_stalled = 目标未达成，我无法取得进一步进展
goal_status = 目标：{ $objective }
goal_unproven = 没有任何内容表明目标已经达成
goal_waits = 目标尚未达成：需要先等待某件事发生

hello =
    你好，我是 pudu。给我发条消息就可以开始对话。

    发送 /help 查看可用命令。
code_invalid = 这个配对码无效或已过期，请找管理员要一个新的。
code_unreadable = 暂时无法核对这个配对码，请稍后再试。
connect_privately = 请在私聊里发给我：谁看到配对码，谁就能使用它。
connect_offer = 想让我把你在另一个平台上也认作同一个人，请在十分钟内到那边私聊发送：`/connect { $code }`。之后两边共用记忆、限额与用量。发送 `/connect off` 可解除。
connect_confirm = 这会把你和 { $account } 上的 { $name } 认作同一个人：共用记忆、限额与用量。这里关于你的记忆会并入那边，解除后也留在那边；这里你自己的技能、密钥、对话和文件不会转移。只有那确实是你本人时才继续。请点按钮确认，或发送 `{ $action }`。
connect_yes = 是我本人
joined = 完成：在这里你现在就是 { $account } 上的 { $name }。发送 `/connect off` 可解除。
joined_already = 你们已经是同一个人了。
joined_by = { $account } 上的 { $name } 已凭你申请的配对码与你成为同一个人。如果那不是你，请在这里发送 `/connect off`。
parted = 完成：在这里你又是独立的一个人了。双方共有的记忆留在另一边。
parted_by = { $name } 已解除：在这里你又是独立的一个人了。双方共有的记忆留在对方那边。
parted_others = 完成：凭你的配对码加入的人又是独立的人了。双方共有的记忆留在你这边。
parted_already = 在这里你本来就是独立的一个人。
connected = 绑定成功，我认识你了。跟我打个招呼吧！
known_already = 我已经认识你了，直接跟我说话吧！
stranger_by_code = 我还不认识你，暂时不能回答。请找管理员要一个配对码，然后发送 `/connect 配对码` 给我。
stranger_by_id = 我还不认识你，暂时不能回答。请让管理员添加你的 ID：{ $id }

## /new、/stop 与 /retry。

conversation_started = 已开始新对话。
making_given_up = 之前正在创建的智能体已取消。
compact_busy = 我还在处理任务，等结束后再发送 /compact。
compact_disabled = 这里关闭了对话总结（`summarization.enabled`）。
compact_failed = 模型没有写出可用的总结，所以什么都没有改变。请稍后再试。
compact_not_enough = 目前的内容还不够总结：最新的消息会原样保留，对其余内容的总结至少要省下 400 个词元。
thread_busy = 我还在处理任务，请等结束后再试。
compacted = 已总结之前的对话：模型现在读取约 { $after } 个 token，之前是 { $before } 个。
nothing_running = 当前没有正在进行的任务。
nothing_to_retry = 还没有可以重新回答的问题。
stopped = 已停止。
stopped_and_dropped = 已停止，并丢弃了 { $count } 条排队中的消息。

## /mode。

mode_interrupt = 打断当前任务，立即回答新消息
mode_queue = 新消息排队，等我忙完再处理
mode_set = 已切换到 `{ $name }` 模式：{ $about }。
mode_steer = 新消息直接交给正在进行的任务
mode_unknown = 没有 `{ $name }` 这个模式，可选 `queue`、`steer` 或 `interrupt`。
modes = 我工作时收到新消息：

## /models。

model_in_use = 本对话已改用 `{ $name }`。
model_none = 无
model_unknown = 没有名为 `{ $name }` 的模型。
models = 可用模型：
models_listed = 发送 /models 查看可用模型。
models_none = 还没有配置模型。
blind_model = { $name } 看不了图片，`{ $seeing }` 可以：发送 `/models { $seeing }` 即可切换。
blind_models = { $name } 看不了图片，这里配置的其他模型也都看不了。

## /skills。

skill_withheld = `{ $agent }` 不能使用技能 `/{ $skill }`，发送 /skills 查看可用的技能。
skills = 技能：
skills_none = 这里没有可用的技能。
skills_usage = 在消息开头写上技能名，后面说明你的需求。合适的时候，我也会自己使用这些技能。

## /secret。

secret_deleted = 已删除：`{ $name }`。
secret_kept = 已保存：`{ $name }`。你调用需要它的技能时，技能的命令能在环境变量中读到它；助手本身看不到。
secret_message_gone = 含有密钥的那条消息我已经删掉了。
secret_message_local = 含有密钥的那条消息我没有保留。如果你是在终端里输入的，它还留在屏幕上和 shell 的历史记录里，请清除；在终端里请改用 `pudu secret set`，它从标准输入读取密钥的值。
secret_message_stays = 含有密钥的那条消息还在这里，我删不了，请你自己删除。
secret_missing = 技能 `/{ $skill }` 需要密钥 `{ $name }`。请在私聊中发送 `/secret set { $name } 值` 交给我；在此之前，它会在没有密钥的情况下工作。
secret_missing_about = 技能 `/{ $skill }` 需要密钥 `{ $name }`（{ $about }）。请在私聊中发送 `/secret set { $name } 值` 交给我；在此之前，它会在没有密钥的情况下工作。
secret_missing_room = 技能 `/{ $skill }` 需要密钥 `{ $name }`。为了不让群里的其他人拿到，密钥只在私聊中可用；在这里，它会在没有密钥的情况下工作。
secret_name_odd = 密钥不能叫这个名称：只能用字母、数字和 `_`，也不能是 PATH 这类会影响程序运行的变量。
secret_privately = 密钥只能在私聊里交给我，请私聊发送。
secret_seen = 这条我没有保存：这里的其他人可能已经看到了。请先更换这个密钥，再在私聊里把新的交给我。
secret_unknown = 没有名为 `{ $name }` 的密钥。
secret_usage = 发送 `/secret set 名称 值` 保存，发送 `/secret delete 名称` 删除。我不会显示密钥的内容。
secret_value_unsure = 没有收到 `{ $name }` 的新值，但已保存了一个同名的密钥。如果中途重启过，它可能就是您刚发送的，也可能是之前的：为确保无误，请再次发送 `/secret set { $name } 值`。如果带有该值的消息仍在聊天中，请将其删除；`/secret` 会列出已保存的名称。
secret_value_missing = 没有收到 `{ $name }` 的值：请发送 `/secret set { $name } 值`。如果中途重启过，需要重新发送。
secret_value_odd = 密钥的长度为 8 到 8192 字节，且不能含有控制字符。这个没有保存。
secrets = 你的密钥名称：
secrets_full = 每个人能保存的密钥数量已达上限，请先删除一个。
secrets_none = 你还没有交给我任何密钥。
secrets_wanted = 你的技能还需要这些：

## /usage 与 /memory。

memory_facts = 这里共有 { $count } 条记忆：
memory_empty = 这里还没有任何记忆。
memory_none = 这里没有这样的记忆。
memory_usage = /memory 列出全部记忆；后面可以加：search 关键词、add 内容、forget 编号、forget all、export（导出为文件）、last（查看上次回答用到的记忆）、off、on。
memory_disabled = 管理员已在这里停用记忆。
memory_is_off = 记忆已关闭：不再学习，也不再使用。发送 `/memory on` 可开启。
memory_off = 记忆已关闭：从现在起不再学习，也不再使用已有记忆。发送 `/memory forget all` 可删除。
memory_on = 记忆已开启。
memory_add_while_off = 记忆已关闭，因此没有记住这一条。发送 `/memory on` 可开启。
memory_added = 已记住，编号 `{ $id }`。
memory_forgotten = 已忘记。
memory_all_forgotten = 已全部忘记。
memory_unknown = 没有编号为 `{ $id }` 的记忆。发送 /memory 可查看全部。
memory_refused = 这一条无法记住：{ $why }。
memory_last =
    上次回答用到了这些：

    { $text }
memory_exported = 这里是全部记忆。
memory_not_exported = 无法生成文件，请稍后再试。
memory_last_none = 上次回答没有用到任何记忆。
memory_unreadable = 无法读取记忆。
usage = 本对话的 token 用量：输入 { $read }，输出 { $written }，合计 { $total }，共运行 { $runs } 次。
think_high = 深入思考，适合难题
think_levels = 回答前的思考程度（需模型支持）：
think_low = 稍作思考
think_medium = 多思考一些
think_off = 不思考，速度最快
think_on = 按模型的配置
think_set = 本对话的思考程度为 `{ $name }`：{ $about }。
think_only_on = { $name } 只能打开或关闭思考，因此相当于打开。
think_unavailable = { $name } 没有思考程度可选。发送 /models 可查看其他模型。
think_unknown = 没有 `{ $name }` 这个选项。发送 /think 可查看全部。
usage_cache = 其中 { $percent } % 的输入来自提供方的缓存。
usage_cost = 费用：{ $cost }。
usage_cost_unknown = 有 { $calls } 次调用的费用未知：此处没有该模型的价格。
usage_estimated = 有 { $calls } 次调用的用量为估算值：提供方没有报告用量。
usage_caller_assistance = 建议
usage_caller_goal = 目标
usage_caller_lead = 回答
usage_caller_memory = 记忆
usage_caller_subagent = 子代理
usage_caller_summary = 摘要
usage_caller_title = 标题
usage_part = { $model }（{ $caller }）：输入 { $read }，输出 { $written }
usage_reasoning = 输出中有 { $tokens } 为思考。
usage_privately = 您自己的用量与额度只在私聊中显示：请在私聊里发送 `/usage`。
usage_today = 您今天在所有聊天中的用量：{ $total } token。
usage_unreadable = 暂时无法读取用量，请稍后再试。

## 额度。

budget_of_run = 本次运行
budget_of_person = 您
budget_of_room = 本聊天室
budget_of_account = 本机器人账号
budget_of_everybody = 全体用户
budget_of_named = 用户“{ $name }”
budget_tokens = { $tokens } 个 token
budget_used_day = { $whose }今天的额度已用完，将于 00:00（UTC）重新开放。
budget_used_month = { $whose }本月的额度已用完，将于下月 1 日 00:00（UTC）重新开放。
budget_used_run = 本次运行的额度已用完，我先停在这里。回复“继续”，我会在新的运行中接着做。
budget_short_day = { $whose }今天的额度 { $limit } 还剩 { $left }，不够再回答一次，将于 00:00（UTC）重新开放。
budget_short_month = { $whose }本月的额度 { $limit } 还剩 { $left }，不够再回答一次，将于下月 1 日 00:00（UTC）重新开放。
budget_short_run = 本次运行的额度 { $limit } 还剩 { $left }，不够再回答一次，我先停在这里。回复“继续”，我会在新的运行中接着做。
budget_scant_day = { $whose }今天剩下的额度不够再回答一次，将于 00:00（UTC）重新开放。
budget_scant_month = { $whose }本月剩下的额度不够再回答一次，将于下月 1 日 00:00（UTC）重新开放。
budget_small_day = { $whose }今天的额度总共只有 { $limit }，而这次回答大约需要 { $needs }。等待没有用：用 /new 开始一个较短的对话，或请管理员提高上限（{ $key }）。
budget_small_month = { $whose }本月的额度总共只有 { $limit }，而这次回答大约需要 { $needs }。等待没有用：用 /new 开始一个较短的对话，或请管理员提高上限（{ $key }）。
budget_small_run = 本次运行的额度总共只有 { $limit }，而这次回答大约需要 { $needs }。等待没有用：用 /new 开始一个较短的对话，或请管理员提高上限（{ $key }）。
budget_busy = { $whose }的额度尚未用完，但正在进行的调用可能会用掉剩余部分，请过几分钟再试。
budget_near_day = { $whose }今天的额度已用 { $percent } %，将于 00:00（UTC）重新计算。
budget_near_month = { $whose }本月的额度已用 { $percent } %，将于下月 1 日 00:00（UTC）重新计算。
budget_cheaper = 从现在起由 { $model } 回答。
budget_cheaper_now = 剩余额度不够原来的模型使用，因此由 { $model } 回答。
budget_lines = 额度：
budget_line_run = 每次运行最多可用 { $limit }。
budget_line_day = { $whose }今天：已用 { $spent }，上限 { $limit }，还剩 { $left }，00:00（UTC）重新计算。
budget_line_month = { $whose }本月：已用 { $spent }，上限 { $limit }，还剩 { $left }，下月 1 日 00:00（UTC）重新计算。

## /status。

health_connecting = 连接中
health_degraded = 不稳定
health_refused = 凭据被拒绝
health_ready = 正常
health_stopped = 已停止
state_delivering = 正在发送回答
state_idle = 空闲
state_working = 已运行 { $seconds } 秒
status_agent = 智能体：`{ $name }`
status_channel = 渠道：`{ $account }` { $state }
status_channel_error = 最近的错误：{ $error }
status_channel_event = 最近一次事件在 { $seconds } 秒前
status_mode = 工作时收到新消息：`{ $name }`（{ $about }）
status_model = 模型：`{ $name }`
status_standby = 上次它未能回答，由 `{ $name }` 代答
status_state = 状态：{ $state }
status_thread = 当前会话：`{ $thread }`
status_title = 标题：{ $title }
status_tokens = token 用量：{ $total }，共运行 { $runs } 次
status_undelivered = 未能送达的回复：{ $number } 条
status_waiting = 排队中的消息：{ $number } 条

## /agent。

agent_answers = 接下来由 `{ $name }` 在这里回答。
agent_answers_for = 接下来由 `{ $name }` 在这里回答：{ $about }。
agent_answers_now = 这里由 `{ $name }` 回答。
agent_being_made = { $name }（创建中）
agent_broken = 智能体 `{ $name }` 无法使用：{ $why }。
agent_broken_line = `{ $name }` 无法使用：{ $why }
agent_exists = 已经有名为 `{ $name }` 的智能体了。
agent_fixed = 这里由谁回答由管理员指定。
agent_here = ← 当前
agent_in_making = `{ $name }` 正在这里创建
agent_lead = 默认智能体
agent_name_long = `{ $name }` 不能用作智能体的名称：不能超过 { $most } 个字符。
agent_name_odd = `{ $name }` 不能用作智能体的名称：只能使用字母、数字和连字符。
agent_name_taken = `{ $name }` 不能用作智能体的名称：它已有别的含义。
agent_not_made_here = 只有管理员可以创建智能体。
agent_unknown = 没有名为 `{ $name }` 的智能体。
agent_unreadable = 暂时无法读取这个智能体，管理员可以在日志中查看原因。
agents = 智能体：
agents_full = 智能体已达到 { $most } 个上限，请先删除一个。
agents_listed = 发送 /agent 查看已有的智能体。
agents_new = 发送 `/agent new 名称` 可以创建新的智能体。
agents_new_nameless = 新智能体需要一个名称。
agents_new_usage = 请发送 `/agent new 名称`，并在后面说明它的用途。
agents_switch = 发送 `/agent 名称` 切换本对话的智能体，`/agent default` 恢复默认。
bootstrap_not_here = 主代理由所有人共用，只有此机器人的审批人可以设定它的性格。

## 按钮与选择结果。

button_answer = 回答
button_approve = 同意
button_deny = 拒绝
button_retry = 重试
button_stop = 停止
choice_made = ✅ { $name } 选择了：{ $label }
form_answered = ✅ { $name } 已回答。
form_date = 请按 YYYY-MM-DD 填写日期。
form_files = 请在聊天中发送：{ $names }
form_hint = 请在一条消息里回答每一项。带 * 的为必填。
form_long = 内容太长。
form_missing = 请填写这一项。
form_not_yours = 这些问题需要由其他人回答。
form_number = 请填写数字。
form_option = 请从选项中选择：{ $options }
form_over = 这些问题已经回答过，或者对话已经继续。
form_unread = 无法打开表单。请稍后重试，或者直接发消息回答。
form_yes = 是
form_yes_or_no = 请回答“是”或“否”。

## 审批。

approval_by_others = （只有管理员指定的审批人可以决定。）
approval_in_file = （完整内容会单独发出，支持文件的聊天里会以文件形式发送。请先看完，内容送达之前无法同意。）
approval_late = 这件事已经有人决定了。
approval_not_yours = 这件事需要由其他人决定。
approval_over = 这件事已经结束了。
approval_question = 🔐 可以执行吗？{ $request }
approval_unread = 完整内容还没有送达，请等它到了、看完之后再按一次。你随时可以按“拒绝”。
approval_unstored = 暂时没能记下你的决定，请稍后再试。
approved = ✅ { $by } 同意了 { $request }
approved_by_nobody = ⌛ { $request } 没有人及时同意
approved_somehow = ✅ { $request } 已获同意
asked_whole = 📄 这是我请求执行的完整内容。
asked_whole_link = 也可以[在线查看]({ $link })。
denied = ⛔ { $by } 拒绝了 { $request }
nobody_asked = ⛔ { $request } 没有执行。只有管理员指定的审批人可以同意，而他们看不到这个聊天。请在有审批人的群里再问一次。

## 进行中的任务。

running = 正在运行 { $tools }…
summarizing = 正在总结之前的对话…
thinking = 正在思考…
answer_follows = 正在处理，回答随后就到。
waiting_for_decision = 等你决定…
working_on = 子代理正在处理任务…
todos_done = 已完成 { $count } 项
todos_left = 📋 { $all } 步中已完成 { $done } 步，还剩：{ $left }
task_gap = ；
task_doing = 🔹 { $task }：{ $tools }
task_thinking = 🔹 { $task }：思考中…
retrying_broken = 模型的回答不完整，正在重试…
retrying_busy = 模型繁忙，{ $seconds } 秒后重试…
retrying_elsewhere = 模型没有响应，正在改用另一个模型…
retrying_failed = 模型服务商出错，正在重试…
retrying_limited = 模型服务商限制了请求频率，{ $seconds } 秒后重试…
retrying_resting = 模型连续出错，{ $seconds } 秒后重试…
retrying_unreachable = 暂时连不上模型，正在重试…

## 任务的结局。

end_filtered = ⚠️ *回答被模型服务商的内容过滤中断了。请换个说法，或去掉可能触发过滤的内容。*
end_given_up = ⚠️ 处理过程中被中断了 { $times } 次，我先不再尝试了。
end_length = ⚠️ *已达到模型单次回答的长度上限（`max_tokens`），回复“继续”我就接着写。*
end_limit = ⚠️ *步骤数已达到上限，回复“继续”我就接着做。*
end_silent = （助手没有给出回答。）
end_stopped = *已停止。*
summarized = *对话已经很长，我总结了较早的部分，其中一些细节可能已经丢失。*
end_timeout = ⚠️ *时间用完了，先做到这里。*
end_too_late = 我离开得太久，没能及时回答。如果还需要，请再问一次。

## 任务失败的原因。

failed_auth = 模型服务商拒绝了密钥，请联系管理员处理，原因见日志。
failed_broken = 回答时我内部出了错，管理员可以在日志中查看原因。
failed_busy = 模型繁忙，等待后仍未恢复。请稍后再试，或用 /models 换一个模型。
failed_busy_long = 模型繁忙，请 { $minutes } 分钟后再试，或用 /models 换一个模型。
failed_filtered = 这条消息被模型服务商的内容过滤拒绝了。请换个说法，或去掉可能触发过滤的内容。
failed_only_media = 模型只回了图片或其他文件，我无法转发这些内容。请让它用文字回答，或用 /models 换一个模型。
failed_only_thought = 模型的思考用完了一次回答的全部额度，没有余量作答。请把问题拆小一些；机器人管理员可以调高该模型的 `max_tokens`，或减少思考。
failed_silent = 模型没有给出任何回答，再次询问也是如此。请再试一次，或用 /models 换一个模型。
failed_garbled = 无法解析模型的回答，请再试一次。
failed_history = 无法读取之前的对话，暂时不能回答，请稍后重新发送。
failed_no_api = 在配置的地址上找不到模型。请联系管理员检查模型的 `base_url`（通常以 /v1 结尾），可用 `pudu doctor` 诊断。
failed_no_model = 还没有配置模型，请联系管理员添加。
failed_quota = 模型账户余额不足，请联系管理员处理，或用 /models 换一个模型。
failed_rejected = 模型服务商没有接受这个请求，重试也没有用。请联系管理员查看日志中的原因，并检查模型设置。
failed_too_long = 对话太长，超出了模型的上限。发送 /new 开始新对话。
failed_unheard = 你的消息没能保存，请重新发送。管理员可以在日志中查看原因。
failed_unknown_model = 模型服务商没有这个模型。发送 /models 选择其他模型，或请管理员修改模型名称。
failed_unreachable = 暂时连不上模型。请稍后再试，或用 /models 换一个模型。
failed_provider = 模型服务商出错（{ $status }）。请稍后再试，或用 /models 换一个模型。
failed_cut = 与模型的连接中断了。请稍后再试，或用 /models 换一个模型。
failed_unstored = 对话内容没能保存，管理员可以在日志中查看原因。

## 用户发来的文件。

fetch_broken = ⚠️ `{ $name }` 没能保存下来，管理员可以在日志中查看原因。
fetch_refused = ⚠️ 无法获取 `{ $name }`：平台没有提供这个文件（{ $why }）。
fetch_stopped = ⚠️ 已停止，没有获取 `{ $name }`。
fetch_too_large = ⚠️ 无法获取 `{ $name }`：文件超过了 { $limit }。
fetch_too_many = ⚠️ 没有获取 `{ $name }`：一次发来的文件太多了。
fetch_unreachable = ⚠️ 无法获取 `{ $name }`：暂时连不上平台，请重新发送。
unread_broken = ⚠️ 无法读取 `{ $name }`：文件可能已损坏，或格式太特殊。
unread_damaged = ⚠️ 无法读取 `{ $name }`：文件已损坏。
unread_empty = ⚠️ 无法读取 `{ $name }`：里面没有文字，可能只有图片。
unread_kind = ⚠️ 无法读取 `{ $name }`：文件内容与类型不符，或不支持这种文档。
unread_large = ⚠️ 无法读取 `{ $name }`：文件太大。
unread_protected = ⚠️ 无法读取 `{ $name }`：文件有密码保护，请去掉密码后重新发送。
unread_slow = ⚠️ 无法读取 `{ $name }`：读取时间过长。
unread_unavailable = ⚠️ 暂时无法读取 `{ $name }`，请稍后重新发送。

## 录音，以及来得太晚的修改。

edit_ask_again = 重新提问
edit_late = ✏️ 您修改这条消息之前，我已经开始处理它了。按下按钮，即可用新的内容重新提问。
edit_late_long = ✏️ 您修改这条消息之前，我已经开始处理它了。要重新提问，请把新的内容作为一条新消息发送。
voice_deaf = 🔇 我听不了 `{ $name }`，请改用文字。
voice_failed = 🔇 无法转写 `{ $name }`：{ $why }。

## 发给用户的文件。

file_gone = ⚠️ 无法发送 `{ $name }`：文件已经不在了。
file_large = ⚠️ 无法发送 `{ $name }`：文件太大。
file_link = 📎 [{ $name }]({ $link })（链接一天内有效）
file_unreadable = ⚠️ 无法发送 `{ $name }`：文件读取失败。
files_left = { $names } 等，另有 { $count } 个
files_too_many = ⚠️ 一次回答最多附带 { $most } 个文件，以下文件没有发送，需要的话请告诉我：{ $names }
unsent = 📎 { $name }（{ $why }）
unsent_empty = 文件为空
unsent_failed = 发送失败
unsent_gone = 文件已经不在了
unsent_large = 超过了 { $platform } 的 { $megabytes } MB 上限
unsent_late = 没能及时发出
unsent_not_file = 不是文件
unsent_uncertain = 不确定是否已送达

## 各平台补充的文案。

answer_by_number = 直接回复数字即可。
answer_refused = ⚠️ { $platform } 没有接受我的回答。
is_thinking = 正在思考…
no_text = （没有文字）
only_you_see = _这条消息只有你能看到：我不在这个会话里，邀请我加入后大家都能看到回答。_
press_again = 请稍后再试。
press_unused = 这个按钮已失效。
you = 你

## 定时任务。

schedule_failing = ⚠️ 定时任务“{ $title }”已连续失败 { $failures } 次，现已暂停。最近一次的原因：{ $error }
schedules = 你的定时任务：
schedules_none = 你没有定时任务。告诉我在什么时间做什么，我就会安排好。
schedule_usage = 发送 `/schedule pause`、`resume`、`run` 或 `delete` 加上列表中的名称，即可修改任务。
schedule_unknown = 你没有名为 { $name } 的定时任务。发送 /schedule 查看任务列表。
schedule_next = 下次：{ $time }
schedule_is_paused = 已暂停
schedule_is_running = 运行中
schedule_is_over = 已结束
schedule_paused = “{ $title }”已暂停。
schedule_resumed = “{ $title }”已恢复，下次运行时间：{ $next }。
schedule_started = “{ $title }”现在开始运行。
schedule_deleted = “{ $title }”已删除。
schedule_off = 管理员已关闭定时任务，到点不会运行。
schedule_busy = 这个任务正在运行，请等它结束后再试。
schedule_ended = 这个任务已经结束。请让我重新安排。
schedule_past = 这个任务的时间已过。请让我重新安排。
schedule_full = 正在运行的定时任务太多，请稍后再试。
