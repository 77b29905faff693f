#!/usr/bin/env python3
"""How long each named question takes on a large database: 200 runs, 2 million layer errors.

    tests/bench/query_times.py QUANTMAP [DATABASE]      the database is made where it is absent (about 400 MB)

Prints a row a question: wall time of the whole command, the median of five. The numbers in the database mean
nothing; what counts is how many there are: 100 runs of `eval` (10 schemes, 50 layers, 5 tasks) and 100 of `error`
on the same schemes (50 layers, 40 places each), of one model.
"""
import os, random, sqlite3, statistics, subprocess, sys, tempfile, time, json, pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMES, LAYERS, PLACES = 11, 50, 40


def fill(path):
    draw = random.Random(0)
    db = sqlite3.connect(path)
    db.executescript((ROOT / "src/store/schema.sql").read_text())
    db.execute("PRAGMA synchronous = OFF")
    sites = [(l, f"model.layers.{l} output") for l in range(LAYERS)]
    sites += [(l, f"model.layers.{l}.mlp.m{p} output") for l in range(LAYERS) for p in range(PLACES - 1)]
    db.executemany("INSERT INTO site VALUES (?, ?, ?)", [(i + 1, *s) for i, s in enumerate(sites)])
    db.executemany("INSERT INTO task VALUES (?, ?)", [(i, f"task{i}") for i in range(1, 6)])
    errors = 0

    def insert(table, rows):
        names = [c[1] for c in db.execute(f"PRAGMA table_info({table})")]
        for row in rows:
            keys = [n for n in names if n in row]
            db.execute(f"INSERT INTO {table} ({', '.join(keys)}) VALUES ({', '.join('?' * len(keys))})",
                       [row[k] for k in keys])

    text = {c[1]: "" for c in db.execute("PRAGMA table_info(run)") if c[2] == "TEXT"}
    whole = {c[1]: 1 for c in db.execute("PRAGMA table_info(run)") if c[2] == "INTEGER"}
    for run in range(1, 201):
        command = "eval" if run % 2 else "error"
        insert("run", [{**text, **whole, "id": run, "command": command, "status": "complete", "model_sha256": "m",
                        "notes": "[]", "first_ids": "[]"}])
        for p in range(SCHEMES):
            insert("scheme", [{"run": run, "position": p, "scheme": f"s{p}", "spec": f"w=int{p}:g32", "kv": "bf16" if p % 2 else "int8:token",
                               "weights": f"int{p}:g32", "activations": "bf16"}])
        if command == "eval":
            for p in range(SCHEMES):
                row = {c[1]: draw.random() for c in db.execute("PRAGMA table_info(evaluation)") if c[2] == "REAL"}
                insert("evaluation", [{**row, "run": run, "position": p, "kl_infinite": 0, "margin_flips": 0,
                                       "tokens_scored": 1, "windows": 1, "status": "ok", "bpw_quantized": p + 0.5}])
                insert("task_score", [{"run": run, "position": p, "task_id": t, "items": 200, "acc": draw.random(),
                                       "acc_norm": draw.random(), "flips": p, "status": "ok"} for t in range(1, 6)])
                insert("comparison", [{"run": run, "position": p, "than": q, "metric": m, "difference": draw.random(),
                                       "windows": 30, "verdict": "higher"}
                                      for q in range(p) for m in ("kl_mean", "ln_ppl_ratio")])
            insert("outlier", [{"run": run, "site_id": s, "window": w, "token": 0, "channel": 1, "value": draw.random(),
                                "median_abs": 1, "ratio": 1, "massive": 0, "status": "ok"}
                               for s in range(1, LAYERS + 1) for w in range(30)])
            insert("outlier_share", [{"run": run, "position": p, "site_id": s, "error2": draw.random(), "nonfinite": 0,
                                      "status": "ok"} for p in range(1, SCHEMES) for s in range(1, LAYERS + 1)])
        places = [("total", "activation", s) for s in range(1, LAYERS + 1)]
        if command == "error":
            places += [("local", "output", s) for s in range(LAYERS + 1, len(sites) + 1)]
        rows = [(run, p, s, scope, kind, *[draw.random() for _ in range(6)], 1.0, 0, 0, 100, draw.random(), draw.random(),
                 draw.random(), "ok")
                for p in range(1, SCHEMES) for scope, kind, s in places]
        db.executemany(f"INSERT INTO layer_error VALUES ({', '.join('?' * 19)})", rows)
        errors += len(rows)
    db.commit()
    db.close()
    return errors


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    quantmap = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        path = sys.argv[2] if len(sys.argv) == 3 else os.path.join(folder, "large.db")
        if not os.path.exists(path):
            fill(path)
        db = sqlite3.connect(path)
        print(f"{db.execute('SELECT count(*) FROM run').fetchone()[0]} runs, "
              f"{db.execute('SELECT count(*) FROM layer_error').fetchone()[0]} layer errors, "
              f"{os.path.getsize(path) >> 20} MiB")
        db.close()
        names = json.loads(subprocess.run([quantmap, "query", "--format", "json"], capture_output=True, check=True).stdout)
        for name in [row["name"] for row in names]:
            times, rows = [], 0
            for _ in range(5):
                start = time.perf_counter()
                out = subprocess.run([quantmap, "query", name, "--db", path, "--format", "json"], capture_output=True)
                times.append(time.perf_counter() - start)
                if out.returncode:
                    sys.exit(f"{name}: {out.stderr.decode()}")
                rows = len(json.loads(out.stdout))
            print(f"{name:<20} {statistics.median(times):7.3f} s  {rows:6} rows")


main()
