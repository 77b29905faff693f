"""Opens what `quantmap report` writes in headless Chromium: page_test.py QUANTMAP. Exit status 77: no browser here.
QUANTMAP_SHOTS=FOLDER keeps the screenshots."""
import os
import subprocess
import sys
import tempfile
import unittest

import databases
from browser import Browser, executable

QUANTMAP = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ''
SCHEMES, LAYERS = 5, 6  # of the measured database: those quantized, those of its model
PLOTS = ('pareto', 'heat', 'growth', 'key', 'value', 'outliers', 'tasks')
SECTIONS = ('answer', 'where', 'tasks', 'provenance')
# A mark whose place is no number would be drawn nowhere, silently.
BAD_NUMBERS = '''[...document.querySelectorAll('svg *')].filter(e => [...e.attributes].some(a =>
  a.name !== 'aria-label' && /NaN|undefined|Infinity/.test(a.value))).map(e => e.outerHTML.slice(0, 200))'''


def count(selector):
    return f'document.querySelectorAll({selector!r}).length'


def column(table, number):
    return f'[...document.querySelectorAll("{table} tbody tr")].map(r => r.children[{number}].textContent)'


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='quantmap-page-')
        place = lambda name: os.path.join(cls.folder.name, name)
        cls.shots = os.environ.get('QUANTMAP_SHOTS') or place('shots')
        os.makedirs(cls.shots, exist_ok=True)
        database = databases.measured(QUANTMAP, place('measured.db'))
        cls.page = cls.report(database, place('measured.html'))
        cls.hostile = cls.report(databases.hostile(database, place('hostile.db')), place('hostile.html'))
        cls.large = cls.report(databases.large(place('large.db')), place('large.html'))
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    @staticmethod
    def report(database, page):
        subprocess.run([QUANTMAP, 'report', '--db', database, '--output', page, '--quiet'], check=True)
        return page

    def value(self, expression):
        return self.browser.value(expression)

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def test_the_browser_reports_what_goes_wrong(self):
        """The other tests rest on this: a page with faults has errors."""
        page = os.path.join(self.folder.name, 'faults.html')
        for fault in ('throw new Error("x")', 'alert("x")', 'console.error("x")',
                      'document.body.append(Object.assign(new Image(), {src: "none.png"}))'):
            with open(page, 'w', encoding='utf-8') as file:
                file.write('<body><script>document.documentElement.dataset.drawn = "true"</script><script>'
                           f'{fault}</script></body>')
            self.browser.open(page)
            self.browser.wait('new Promise(done => setTimeout(() => done(true), 100))')
            self.assertTrue(self.browser.errors, fault)
        self.browser.errors.clear()

    def test_it_opens_without_errors_and_loads_nothing(self):
        for width in (1280, 400):
            for dark in (False, True):
                self.browser.open(self.page, width, dark=dark)
                self.assertEqual(self.browser.errors, [])
                self.assertEqual(self.browser.requests, [f'file://{self.page}'])
                self.assertLessEqual(self.value('document.documentElement.scrollWidth'), width,
                                     'the page itself scrolls sideways')

    def test_every_plot_is_drawn(self):
        self.browser.open(self.page)
        self.assertEqual(self.value('[...document.querySelectorAll("[data-plot]")].map(e => e.dataset.plot)'), list(PLOTS))
        self.assertEqual(self.value(count('[data-plot=pareto] .mark')), SCHEMES)
        self.assertEqual(self.value(count('[data-plot=pareto] .mark line')), SCHEMES, 'error bars')
        self.assertEqual(self.value(count('[data-plot=heat] .cell')), (SCHEMES - 1) * LAYERS,
                         'all but the one of the cache alone')
        self.assertEqual(self.value(count('[data-plot=growth] .series')), SCHEMES + 1, 'the noise floor too')
        self.assertEqual(self.value(count('[data-plot=key] .cell')), 2 * LAYERS)
        self.assertEqual(self.value(count('[data-plot=value] .cell')), 2 * LAYERS)
        self.assertGreaterEqual(self.value(count('[data-plot=outliers] .cell')), 10 * LAYERS)
        self.assertEqual(self.value(count('[data-plot=tasks] .mark')), SCHEMES + 2, 'the reference and the noise floor too')
        self.assertEqual(self.value(BAD_NUMBERS), [])
        outside = self.value('''[...document.querySelectorAll('svg .mark, svg .cell, svg .series path')].filter(e => {
          const s = e.closest('svg').getBoundingClientRect(), b = e.getBoundingClientRect();
          return b.left < s.left - 1 || b.right > s.right + 1 || b.top < s.top - 1 || b.bottom > s.bottom + 1; }).length''')
        self.assertEqual(outside, 0)

    def test_the_answer_comes_first_and_its_scheme_is_marked(self):
        self.browser.open(self.page)
        words = self.value('document.querySelector(".verdict").textContent')
        self.assertTrue(words.startswith('Take ') or words.startswith('Keep the reference'), words)
        scheme = words[5:].split(':')[0]
        self.assertEqual(self.value('document.querySelector("#schemes tr.pick th").textContent'), scheme)
        self.assertLess(self.value('document.querySelector(".verdict").getBoundingClientRect().bottom'), 400)
        self.assertEqual(self.value('document.querySelector("[data-plot=pareto] .ring").__data__.scheme'), scheme)

    def test_tables_sort_by_click_and_by_keyboard(self):
        self.browser.open(self.page)
        table, heading = '#schemes > .wide table', '#schemes > .wide thead th:nth-child(7)'  # bytes of weights
        start = self.value(column(table, 0))
        self.assertEqual(start[0], 'BF16', 'sorted by KL')
        self.assertEqual(self.value('document.querySelector("#schemes th[aria-sort]").textContent'), 'KL, nats/token')
        amounts = lambda: [float(text.split()[0]) for text in self.value(column(table, 6))]
        self.browser.click(f'{heading} button')
        self.assertEqual(self.value(f'document.querySelector("{heading}").ariaSort'), 'ascending')
        self.assertEqual(amounts(), sorted(amounts()))
        self.value(f'document.querySelector("{heading} button").focus()')
        self.browser.key('Enter')
        self.assertEqual(self.value(f'document.querySelector("{heading}").ariaSort'), 'descending')
        self.assertEqual(amounts(), sorted(amounts(), reverse=True))
        self.assertEqual(self.value(count('#schemes th[aria-sort]')), 1)
        self.assertEqual(sorted(self.value(column(table, 0))), sorted(start), 'the same rows')
        self.assertNotEqual(self.value(column(table, 0)), start)

    def test_values_show_under_the_mouse_and_by_arrow_keys(self):
        self.browser.open(self.page)
        tip = 'document.getElementById("tip").hidden ? null : document.getElementById("tip").textContent'
        self.assertIsNone(self.value(tip))
        self.browser.point('[data-plot=heat] .cell')
        self.assertRegex(self.value(tip), r'^W8A16, layer 0: [0-9.e-]+ relative error$')
        self.browser.point('[data-plot=pareto] .mark circle')
        self.assertRegex(self.value(tip), r'^W8A16\nKL [0-9.e-]+ ± .* nats')
        self.browser.key('Escape')
        self.assertIsNone(self.value(tip))
        self.browser.point('h1')
        self.value('document.querySelector("[data-plot=heat]").focus()')
        for key in ('ArrowRight', 'ArrowRight', 'ArrowDown'):
            self.browser.key(key)
        self.assertRegex(self.value(tip), r'^W4A16, layer 1: [0-9.e-]+ relative error$')

    def test_site_scope_and_metric_are_switched(self):
        self.browser.open(self.page)
        self.value('''window.choose = (name, value) => {
          const labels = [...document.querySelectorAll('#heat label')];
          const box = labels.find(l => l.textContent.startsWith(name)).querySelector('select');
          box.value = value;
          box.dispatchEvent(new Event('change')); }''')
        caption = 'document.querySelector("#heat figcaption").textContent'
        fills = '[...document.querySelectorAll("[data-plot=heat] .cell")].map(e => e.style.fill).join()'
        seen = set()
        for name, choice, expected in (('Site', 'local output q_proj', 'q_proj output, local, median row'),
                                       ('Metric', 'rel_error', 'q_proj output, local, pooled'), ('Scope', 'total', 'total')):
            self.value(f'choose({name!r}, {choice!r})')
            self.assertIn(expected, self.value(caption))
            seen.add(self.value(fills))
        self.assertEqual(len(seen), 3)
        self.assertEqual(self.value(BAD_NUMBERS), [])

    def test_size_is_bytes_of_weights_or_with_the_cache_or_bits(self):
        self.browser.open(self.page)
        seen = set()
        for choice in ('bytes', 'both', 'bits'):
            self.value('''(() => { const box = document.querySelector('#pareto select');
              box.value = '%s';
              box.dispatchEvent(new Event('change')); })()''' % choice)
            self.assertEqual(self.value(count('[data-plot=pareto] .mark')), SCHEMES)
            seen.add(self.value('[...document.querySelectorAll(".mark circle:last-child")]'
                                '.map(e => e.getAttribute("cx")).join()'))
        self.assertEqual(len(seen), 3)
        self.assertEqual(self.value(BAD_NUMBERS), [])

    def test_what_looks_like_markup_stays_text(self):
        self.browser.open(self.hostile)
        self.assertIn(databases.HOSTILE, self.value('document.querySelector("h1").textContent'))
        self.assertEqual(self.value('document.title').count(databases.HOSTILE), 1)
        self.assertIn(databases.HOSTILE_SCHEME + '1', self.value(column('#schemes > .wide table', 0)))
        self.assertEqual(self.value(count('img, iframe, object, embed')), 0)
        self.assertEqual(self.value('document.scripts.length'), 3)
        self.value('document.querySelectorAll("details").forEach(d => { d.open = true; })')
        self.browser.wait('new Promise(done => setTimeout(() => done(true), 50))')
        self.assertEqual(self.value(count('img')), 0)
        self.assertEqual(self.browser.requests, [f'file://{self.hostile}'])
        for plot in PLOTS:
            self.assertEqual(self.value(count(f'[data-plot={plot}]')), 1, plot)

    def test_a_sweep_of_40_schemes_by_60_layers_is_small_and_quick(self):
        self.assertLess(os.path.getsize(self.large), 5e6)
        self.assertLess(self.browser.open(self.large), 20, 'seconds, on a machine busy with other tests')
        self.assertEqual(self.value(count('[data-plot=heat] .cell')), 39 * 60)
        self.assertEqual(self.value(count('[data-plot=growth] .series')), 39)
        self.assertEqual(self.value(count('[data-plot=pareto] .mark')), 39)
        self.assertEqual(self.value(BAD_NUMBERS), [])
        took = self.value('''(() => {
          const box = [...document.querySelectorAll('#heat select')].find(b => b.options.length > 5);
          const start = performance.now();
          for (const option of [...box.options].slice(0, 5)) {
            box.value = option.value;
            box.dispatchEvent(new Event('change'));
            document.body.getBoundingClientRect(); }
          return (performance.now() - start) / 5; })()''')
        self.assertLess(took, 2000, 'milliseconds for another heat map')
        self.browser.size(400, 900)
        self.browser.wait('document.documentElement.scrollWidth <= 400')
        self.browser.open(self.large)
        self.browser.screenshot(os.path.join(self.shots, 'large.png'))

    def test_it_prints_dark_on_white_without_controls(self):
        self.browser.open(self.page, width=700, dark=True, media='print')  # A4 or letter, less margins
        self.assertLessEqual(self.value('document.querySelector("#schemes table").offsetWidth'), 700,
                             'columns would be cut off')
        self.assertEqual(self.value('getComputedStyle(document.body).backgroundColor'), 'rgb(255, 255, 255)')
        self.assertEqual(self.value('getComputedStyle(document.body).color'), 'rgb(0, 0, 0)')
        self.assertEqual(self.value('[...document.querySelectorAll("select, nav")]'
                                    '.filter(e => e.checkVisibility()).length'), 0)
        self.assertGreater(len(self.browser.call('Page.printToPDF', printBackground=True)['data']), 50_000)

    def test_a_screen_reader_finds_names_and_levels(self):
        self.browser.open(self.page)
        nodes = self.browser.call('Accessibility.getFullAXTree')['nodes']
        named = ('button', 'combobox', 'image', 'img', 'table', 'link', 'region', 'navigation')
        unnamed = [node['role']['value'] for node in nodes
                   if not node['ignored'] and node.get('role', {}).get('value') in named
                   and not node.get('name', {}).get('value')]
        self.assertEqual(unnamed, [])
        self.assertGreater(sum(node.get('role', {}).get('value') == 'rowheader' for node in nodes), SCHEMES)
        levels = self.value('[...document.querySelectorAll("h1, h2, h3, h4")].map(h => Number(h.tagName[1]))')
        self.assertEqual(levels[0], 1)
        self.assertEqual([b for a, b in zip(levels, levels[1:]) if b > a + 1], [])
        self.assertEqual(self.value('document.documentElement.lang'), 'en')

    def test_every_section_has_something_to_see(self):
        for dark in (False, True):
            for width in (1280, 400):
                self.browser.open(self.page, width, dark=dark)
                for section in SECTIONS:
                    path = os.path.join(self.shots, f'{section}-{width}-{"dark" if dark else "light"}.png')
                    self.browser.screenshot(path, f'#{section}')
                    self.assertGreater(os.path.getsize(path), 10_000, path)


if __name__ == '__main__':
    if not executable():
        print('no chromium here (scripts/setup installs it): the page is not opened')
        sys.exit(77)
    unittest.main(verbosity=2)
