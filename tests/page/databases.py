"""Results databases for the page's tests: a measured one, and a large one that is made up."""
import math
import os
import random
import shutil
import sqlite3
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL, TEXT = f'{SOURCE}/datasets/demo', f'{SOURCE}/datasets/demo/text.txt'
HOSTILE = '<script>alert(1)</script>'
HOSTILE_SCHEME = '"><img src=x onerror=alert(2)>'


def measured(quantmap, path):
    """Everything that a report shows, on the model that comes with quantmap."""
    common = ['--db', path, '--quiet', '--output', os.devnull, '--ctx', '64', '--text', TEXT]
    schemes = ['--schemes', 'W8A16', 'W4A16', 'W4A8', 'NVFP4+KVFP8', 'BF16+KVINT8']
    for command in (['eval', MODEL, *common, '--windows', '24', '--noise-floor', '--tasks', 'demo', '--items', '0-9',
                     *schemes],
                    ['error', MODEL, *common, '--windows', '2', *schemes],
                    ['outliers', MODEL, *common, '--windows', '2', '--schemes', 'NVFP4', 'a=int8:tensor']):
        subprocess.run([quantmap, *command], check=True, cwd=SOURCE)
    return path


def hostile(path, copy):
    """The same with names that look like markup, in every column of text that a page could show."""
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as db:
        db.execute('UPDATE run SET model = ?1, model_type = ?1, text = ?1, command_line = ?1, machine = ?1, '
                   'device = ?1, version = ?1, git_revision = ?1, notes = json_array(?1)', (HOSTILE,))
        db.execute('UPDATE scheme SET scheme = ?1 || position, spec = ?1 WHERE position BETWEEN 1 AND 3',
                   (HOSTILE_SCHEME,))
        db.execute('UPDATE task SET task = ?', (HOSTILE,))
        db.execute("UPDATE evaluation SET status = ? WHERE position = 1", (HOSTILE,))
        db.execute('INSERT OR REPLACE INTO evaluation_note SELECT run, position, 0, ?1 FROM evaluation', (HOSTILE,))
        db.execute("UPDATE site SET site = 'model.layers.' || layer || '.' || ?1 || ' output' "
                   "WHERE site LIKE '%up_proj output'", (HOSTILE,))
    db.close()
    return copy


def large(path, schemes=40, layers=60):
    """A sweep as large as anybody's: `schemes` by `layers`, every site, scope and metric."""
    dice = random.Random(7)
    db = sqlite3.connect(path)
    with open(f'{SOURCE}/src/store/schema.sql', encoding='utf-8') as schema:
        db.executescript(schema.read())

    def insert(table, **row):
        """Columns that may not be NULL and are not given are 0 or empty."""
        for _, name, kind, required, default, key in db.execute(f'PRAGMA table_info({table})'):
            if required and default is None and name not in row and not (key and name == 'id'):
                row[name] = '' if kind == 'TEXT' else 0
        db.execute(f'INSERT INTO {table} ({", ".join(row)}) VALUES ({", ".join("?" * len(row))})', list(row.values()))

    insert('run', key='k', command='eval', status='complete', command_line='quantmap eval huge', model='huge',
           model_sha256='0' * 64, text='text.txt', ctx=2048, windows=64, compute='bf16', started_at='2026-01-01T00:00:00Z',
           finished_at='2026-01-01T01:00:00Z', first_ids='[]', notes='[]')
    damage = []
    for s in range(schemes):
        name = f'w=int{2 + s % 7}:g{2 ** (4 + s % 5)},a=int8:token,{s}' if s else 'BF16'
        insert('scheme', run=1, position=s, scheme=name, spec=f'scheme {s} in full')
        damage.append(0 if s == 0 else 10 ** dice.uniform(-5, 0))
        insert('evaluation', run=1, position=s, status='ok', kl_mean=damage[s] ** 2, kl_stderr=damage[s] ** 2 / 50,
               kl_low=damage[s] ** 2 * 0.96, kl_high=damage[s] ** 2 * 1.04, ppl=10 + damage[s], ppl_stderr=0.1,
               weight_bytes=2.0 ** 34 * (1 if s == 0 else dice.uniform(0.2, 0.6)), kv_bytes_per_token=147456.0,
               bpw_quantized=16 if s == 0 else dice.uniform(2, 9), top1_agreement=1 - damage[s] / 2,
               windows=64, tokens_scored=131008)
    places = [('layer', 'activation', 'output', ('total',))]
    scopes = ('local', 'inherited', 'total')
    for module in ('self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj', 'self_attn.o_proj', 'mlp.gate_proj',
                   'mlp.up_proj', 'mlp.down_proj'):
        places += [(module, 'weight', 'weight', ('local',)), (module, 'activation', 'input', scopes),
                   (module, 'output', 'output', scopes)]
    places += [('self_attn', kind, kind, scopes) for kind in ('key', 'value', 'attention_output')]
    places.append(('self_attn', 'attention_weights', 'attention_weights', ('total',)))
    rows, sites = [], {}
    for layer in range(layers):
        for module, kind, tensor, measured_in in places:
            prefix = f'model.layers.{layer}' + ('' if module == 'layer' else f'.{module}')
            site = sites.setdefault((layer, f'{prefix} {tensor}'), len(sites) + 1)
            for scope in measured_in:
                for s in range(1, schemes):
                    e = damage[s] * math.exp(dice.gauss(0, 0.4)) * (1 + layer / 20)
                    rows.append((1, s, site, scope, kind, e, e * 0.9, e * 1.3, e * 0.8, e * 0.5, 1 - e * e / 2, 'ok'))
    db.executemany('INSERT INTO site VALUES (?, ?, ?)', [(id, *place) for place, id in sites.items()])
    db.executemany('INSERT INTO layer_error (run, position, site_id, scope, kind, row_error_p50, rel_error, '
                   'row_error_p90, rel_error_rest, rel_error_residual, cosine, status, saturated, nonfinite, count) '
                   f'VALUES ({"?, " * 12}0, 0, 1)', rows)
    db.commit()
    db.close()
    return path
