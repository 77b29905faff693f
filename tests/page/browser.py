"""A headless Chromium, driven over its debugging pipe: standard library only."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')


def executable():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. `errors` collects uncaught exceptions, console errors and warnings, dialogs, failed and refused loads;
    `requests` every URL that the page asked for."""

    def __init__(self, timeout=120):
        self.timeout = timeout
        self.errors, self.requests = [], []
        self._messages, self._answers, self._number = b'', {}, 0
        self._profile = tempfile.TemporaryDirectory(prefix='quantmap-page-', ignore_cleanup_errors=True)
        (theirs_in, self._write), (self._read, theirs_out) = os.pipe(), os.pipe()
        # Chromium reads commands from descriptor 3 and writes to 4; the shell moves them there.
        self._process = subprocess.Popen(
            ['bash', '-c', f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', 'bash', executable(), '--headless=new',
             '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--hide-scrollbars',
             '--disable-background-networking', f'--user-data-dir={self._profile.name}',
             '--remote-debugging-pipe', 'about:blank'],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        targets = self._call('Target.getTargets')['targetInfos']
        target = next(t['targetId'] for t in targets if t['type'] == 'page')
        self._session = self._call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)  # the browser ends when its pipe does
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method, **parameters):
        return self._call(method, session=self._session, **parameters)

    def open(self, path, width=1280, height=900, dark=False, media=''):
        """Loads a file; returns the seconds until it was drawn, whole."""
        self.errors.clear()
        self.requests.clear()
        self.size(width, height)
        self.emulate(dark, media)
        start = time.monotonic()
        self.call('Page.navigate', url=f'file://{os.path.abspath(path)}')
        self.wait('document.readyState === "complete" && document.documentElement.dataset.drawn === "true"')
        return time.monotonic() - start

    def size(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def emulate(self, dark=False, media=''):
        self.call('Emulation.setEmulatedMedia', media=media,
                  features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def value(self, expression):
        """What a JavaScript expression is, as JSON has it."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(f'{expression}: {answer["exceptionDetails"]}')
        return answer['result'].get('value')

    def wait(self, expression):
        end = time.monotonic() + self.timeout
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f'{expression} (errors: {self.errors})')
            time.sleep(0.02)

    def key(self, key):
        for kind in ('keyDown', 'keyUp'):
            text = {'text': '\r'} if key == 'Enter' and kind == 'keyDown' else {}
            code = {'Enter': 13, 'Escape': 27, 'Tab': 9, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39,
                    'ArrowDown': 40}[key]
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def _place(self, selector):
        return self.value(f'(() => {{ const e = document.querySelector({json.dumps(selector)}); '
                          'e.scrollIntoView({block: "center", behavior: "instant"}); '
                          'const b = e.getBoundingClientRect(); '
                          'return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })()')

    def point(self, selector):
        """Moves the mouse over an element."""
        self.call('Input.dispatchMouseEvent', type='mouseMoved', **self._place(selector))

    def click(self, selector):
        place = self._place(selector)
        for kind in ('mousePressed', 'mouseReleased'):
            self.call('Input.dispatchMouseEvent', type=kind, button='left', clickCount=1, **place)

    def screenshot(self, path, selector=None):
        """The whole page, or one element of it."""
        clip = self.value('(() => { const b = document.querySelector(%s).getBoundingClientRect(); '
                          'return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height, scale: 1}; })()'
                          % json.dumps(selector or 'html'))
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=True, clip=clip)['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))

    def _send(self, method, session, parameters):
        self._number += 1
        message = {'id': self._number, 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self._write, data):]
        return self._number

    def _call(self, method, session=None, **parameters):
        number = self._send(method, session, parameters)
        end = time.monotonic() + self.timeout
        while number not in self._answers:
            self._receive(end, method)
        answer = self._answers.pop(number)
        if 'error' in answer:
            raise RuntimeError(f'{method}: {answer["error"]}')
        return answer['result']

    def _receive(self, end, method):
        if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
            raise TimeoutError(method)
        data = os.read(self._read, 1 << 20)
        if not data:
            raise RuntimeError(f'{method}: the browser has gone')
        *whole, self._messages = (self._messages + data).split(b'\0')
        for text in whole:
            message = json.loads(text)
            if 'id' in message:
                self._answers[message['id']] = message
            else:
                self._note(message['method'], message['params'])

    def _note(self, event, what):
        if event == 'Runtime.exceptionThrown':
            details = what['exceptionDetails']
            self.errors.append(details.get('exception', {}).get('description', details['text']))
        elif event == 'Runtime.consoleAPICalled' and what['type'] in ('error', 'warning', 'assert'):
            self.errors.append(' '.join(str(a.get('value', a.get('description'))) for a in what['args']))
        elif event == 'Log.entryAdded' and what['entry']['level'] in ('error', 'warning'):
            self.errors.append(what['entry']['text'])
        elif event == 'Page.javascriptDialogOpening':  # it stops the page until it is closed
            self.errors.append(f'a dialog: {what["message"]}')
            self._send('Page.handleJavaScriptDialog', self._session, {'accept': False})
        elif event == 'Network.requestWillBeSent':
            self.requests.append(what['request']['url'])
