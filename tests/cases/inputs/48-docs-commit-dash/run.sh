trace init -q
printf '[{"role":"user","content":"a"}]' | trace commit --json
trace compile --format text
