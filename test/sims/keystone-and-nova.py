#!/usr/bin/python3
"""A real Keystone and a real Nova, for the tests of internal/cloud/openstack.

Both are Debian's: Keystone on SQLite, by its own program; Nova's API, scheduler,
conductor and compute in this process, as Nova's functional tests put them together,
with the driver that only pretends to have machines. Nova asks Keystone about tokens and
applies its real policy. Placement, Neutron, Glance and Cinder are Nova's own fixtures.

Prints one line of JSON when both listen, and ends when its standard input does, or,
whatever happens, after LIFE. Needs the packages of packages.txt, and a folder to work in
as argument, in which its logs are.
"""

import faulthandler
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

LIFE = 600  # seconds: longer than the tests may take
signal.alarm(LIFE)  # nothing catches it, so this process does not outlive them

HERE = sys.argv[1]
PASSWORD = "admin-of-the-lab"
REGION = "one"


def log(name):
    """A log of that name, which a test that fails shows."""
    return open(os.path.join(HERE, name + ".log"), "w", encoding="utf-8")


def say(what):
    os.write(2, f"{time.strftime('%X')} {what}\n".encode())  # Nova's fixtures capture sys.stderr


def bound():
    """A port of ours alone: another program may take one that was only found to be free."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s


# With a socket as argument this is the child, which is Keystone and nothing else.
KEYSTONE = socket.socket(fileno=int(sys.argv[2])) if len(sys.argv) > 2 else bound()
NOVA = bound()
AUTH_URL = f"http://127.0.0.1:{KEYSTONE.getsockname()[1]}/v3"
NOVA_URL = f"http://127.0.0.1:{NOVA.getsockname()[1]}/v2.1"


def start_keystone():
    conf = os.path.join(HERE, "keystone.conf")
    with open(conf, "w", encoding="utf-8") as f:
        f.write(f"""[DEFAULT]
log_file = {HERE}/keystone.log
use_stderr = false
[database]
connection = sqlite:///{HERE}/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = {HERE}/fernet
[fernet_receipts]
key_repository = {HERE}/fernet
[credential]
key_repository = {HERE}/credential
[identity]
password_hash_rounds = 4
[cache]
enabled = true
backend = oslo_cache.dict
""")

    def manage(*args):
        say("keystone-manage " + args[0])
        subprocess.run(["keystone-manage", "--config-file", conf, *args], check=True, stdout=sys.stderr, timeout=90)

    manage("db_sync")
    me = str(os.getuid()), str(os.getgid())
    manage("fernet_setup", "--keystone-user", me[0], "--keystone-group", me[1])
    manage("bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION,
           "--bootstrap-public-url", AUTH_URL, "--bootstrap-internal-url", AUTH_URL)
    env = dict(os.environ, OS_KEYSTONE_CONFIG_FILES=conf)
    say("Keystone starts")
    out = log("keystone-out")  # it is the child's
    child = subprocess.Popen([sys.executable, "-W", "ignore", __file__, HERE, str(KEYSTONE.fileno())], env=env,
                             pass_fds=[KEYSTONE.fileno()], stdin=subprocess.PIPE, stdout=out, stderr=out)
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(AUTH_URL, timeout=5).read()
            KEYSTONE.close()  # it is the child's
            return child
        except (urllib.error.URLError, OSError) as e:
            if child.poll() is not None or time.monotonic() > deadline:
                child.kill()
                sys.exit(f"Keystone does not come up within 60 s: {e}")
            time.sleep(0.05)


def serve_keystone():
    """Serves Keystone with threads: keystone-wsgi-public has one, and a client's spare connection blocks it."""
    import concurrent.futures
    import socketserver
    import wsgiref.simple_server
    from keystone.server.wsgi import initialize_public_application

    class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
        daemon_threads = True
        request_queue_size = 100

        def server_bind(self):
            self.socket.close()
            self.socket, self.server_address = KEYSTONE, KEYSTONE.getsockname()
            self.server_name, self.server_port = self.server_address
            self.setup_environ()

    def end_with_the_parent():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=end_with_the_parent, daemon=True).start()
    sys.argv = sys.argv[:1]  # Keystone reads it
    keystone = initialize_public_application()
    # All of it in one thread: each has a connection of its own to SQLite, which may lock out the others.
    worker = concurrent.futures.ThreadPoolExecutor(max_workers=1)

    def one_at_a_time(environ, start_response):
        return worker.submit(lambda: list(keystone(environ, start_response))).result()

    wsgiref.simple_server.make_server("127.0.0.1", 0, one_at_a_time, server_class=Server).serve_forever()


def register_nova():
    """Puts Nova into Keystone's catalog."""
    def post(path, body, token=None):
        headers = {"Content-Type": "application/json"}
        if token:
            headers["X-Auth-Token"] = token
        request = urllib.request.Request(AUTH_URL + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.headers, json.load(answer)
    headers, _ = post("/auth/tokens", {"auth": {
        "identity": {"methods": ["password"], "password": {"user": {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}}},
        "scope": {"project": {"name": "admin", "domain": {"id": "default"}}}}})
    token = headers["X-Subject-Token"]
    _, service = post("/services", {"service": {"type": "compute", "name": "nova"}}, token)
    post("/endpoints", {"endpoint": {"service_id": service["service"]["id"], "interface": "public", "region_id": REGION,
                                     "url": NOVA_URL}}, token)


def paste():
    """Writes how Nova's API is put together: as Debian does, with Keystone at hand."""
    with open("/usr/share/nova-common/api-paste.ini", encoding="utf-8") as f:
        lines = f.read()
    mark = "[filter:authtoken]\n"
    if mark not in lines:
        sys.exit("api-paste.ini of Nova has no " + mark)
    out = os.path.join(HERE, "api-paste.ini")
    with open(out, "w", encoding="utf-8") as f:
        f.write(lines.replace(mark, mark + f"""auth_type = password
auth_url = {AUTH_URL}
www_authenticate_uri = {AUTH_URL}
username = admin
password = {PASSWORD}
project_name = admin
user_domain_id = default
project_domain_id = default
"""))
    return out


def main():
    keystone = start_keystone()
    try:
        say("Nova is entered into the catalog")
        register_nova()
        serve_nova()
    except BaseException:
        say(traceback.format_exc())
        raise
    finally:
        keystone.kill()


def serve_nova():
    say("Nova starts")
    # What it does if it is not done by then is seen in the log.
    faulthandler.dump_traceback_later(60, repeat=True, file=log("nova-stack"))
    import logging
    import nova.tests.functional  # noqa: F401  monkey-patches first
    import eventlet
    import eventlet.wsgi
    from nova.tests import fixtures as nova_fixtures
    from nova.tests.functional import integrated_helpers
    from nova import context
    from nova import objects
    from nova.api import wsgi
    from nova.api.openstack import common
    from nova.compute import task_states
    import fixtures

    class AsItIs(fixtures.Fixture):
        """Casts stay casts: states change after the answer, as in a cloud."""
        def __init__(self, _test):
            super().__init__()

    nova_fixtures.CastAsCallFixture = AsItIs

    class Cloud(integrated_helpers._IntegratedTestBase):
        STUB_KEYSTONE = False
        api_major_version = "v2.1"

        def _setup_compute_service(self):
            self.flags(api_paste_config=paste(), group="wsgi")
            self.flags(auth_strategy="keystone", max_limit=5, group="api")
            self.flags(instances=-1, cores=-1, ram=-1, group="quota")
            self.flags(shelved_offload_time=0)
            return super()._setup_compute_service()

        def runTest(self):
            self.app = wsgi.Loader().load_app("osapi_compute")

    cloud = Cloud()
    cloud.setUp()
    logging.getLogger().addHandler(logging.StreamHandler(log("nova")))
    cloud.runTest()
    NOVA.listen(100)
    eventlet.spawn(eventlet.wsgi.server, eventlet.greenio.GreenSocket(NOVA), cloud.app, log=log("nova-api"), debug=False)
    faulthandler.cancel_dump_traceback_later()
    say("both listen")
    # Nova's fixtures capture sys.stdout, and have patched sys.stdin away from threads.
    os.write(1, json.dumps({
        "auth_url": AUTH_URL, "region": REGION, "password": PASSWORD,
        "statuses": sorted({status for tasks in common._STATE_MAP.values() for status in tasks.values()}),
        "tasks": sorted(v for k, v in vars(task_states).items() if k.isupper() and isinstance(v, str)),
    }).encode() + b"\n")
    # Each line has the ID of a server, to be put into a state that Nova does not know.
    while line := eventlet.tpool.execute(os.read, 0, 100):
        everywhere = context.get_admin_context()
        at = objects.InstanceMapping.get_by_instance_uuid(everywhere, line.decode().strip()).cell_mapping
        with context.target_cell(everywhere, at) as cell:
            server = objects.Instance.get_by_uuid(cell, line.decode().strip())
            server.vm_state = "mothballed"
            server.save()
        os.write(1, b"{}\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        serve_keystone()
    else:
        main()
