-- Which runs are here, and where does each come from?
SELECT run, status, command, model, text, protocol, ctx, windows, compute, seed, device, threads, machine, version,
  git_revision, started_at, finished_at, command_line, model_sha256, tokenizer_sha256, text_sha256, token_ids_sha256
FROM runs
ORDER BY run;
