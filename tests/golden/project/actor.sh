# What agents do, as events. GOLDEN_GATE names a folder outside of the suite's: what a program waits for, and what it
# did before, is noted there.
case $1 in
tools)
  echo '{"type": "reasoning", "text": "I look it up."}'
  echo '{"type": "text", "text": "One moment. "}'
  echo '{"type": "tool_call", "id": "a", "name": "get_order", "arguments": {"order_id": "#W17"}}'
  echo '{"type": "tool_result", "id": "a", "result": {"status": "shipped"}, "duration_ms": 20}'
  echo '{"type": "tool_call", "id": "b", "name": "find", "arguments": "{broken"}'
  echo '{"type": "tool_result", "id": "b", "result": "no such tool", "error": true, "duration_ms": 5}'
  echo '{"type": "message_end"}'
  echo '{"type": "text", "text": "It arrives on Friday."}'
  echo '{"type": "note", "code": "unread", "what": "Image"}'
  echo '{"type": "usage", "input_tokens": 40, "output_tokens": 12, "cost": 0.002}'
  echo '{"type": "done", "model": "shop-1", "finish_reason": "stop"}' ;;
waits)
  echo '{"type": "text", "text": "I wait."}'
  touch "$GOLDEN_GATE/waiting"
  until [ -e "$GOLDEN_GATE/open" ]; do sleep 0.02; done
  echo '{"type": "text", "text": " Thank you."}' ;;
talks)
  if grep -q '"turn": *2'; then echo '{"type": "text", "text": "Bye."}'; else echo '{"type": "text", "text": "Hello."}'; fi ;;
busy)
  if mkdir "$GOLDEN_GATE/refused" 2> /dev/null
  then echo '{"type": "error", "kind": "rate_limit", "message": "too many requests", "retry": true, "retry_after_s": 0.05}'
  else echo '{"type": "text", "text": "Yes."}'; fi ;;
fails)
  echo "a warning on standard error" >&2
  echo '{"type": "text", "text": "I try"}'
  echo '{"type": "error", "kind": "server", "message": "it failed", "fix": "try later", "retry": true, "retry_after_s": 0.05}' ;;
esac
