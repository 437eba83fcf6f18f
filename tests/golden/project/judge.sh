# A judge without a model: friendly is who thanks.
if grep -q "Thank you"; then score=5 why="Says when, and thanks."; else score=1 why="Says nothing."; fi
printf '{"type": "text", "text": "{\\"score\\": %s, \\"reasoning\\": \\"%s\\", \\"strengths\\": [], \\"weaknesses\\": []}"}\n' "$score" "$why"
printf '{"type": "usage", "input_tokens": 100, "output_tokens": 10}\n{"type": "done", "model": "judge-1"}\n'
