"""An authority of our own, and the certificates that it signs."""
import ssl
import subprocess


def openssl(*arguments, **keys):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True,
                          **keys)


class Authority:
    """An authority with its file, and certificates that it signs."""

    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self.count = 0
        self.ca = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        self.make(self.ca, self.key, f"/CN={name}")

    def make(self, certificate, key, subject, *more, kind="ec"):
        kinds = {"ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["rsa:2048"]}
        openssl("req", "-x509", "-newkey", *kinds[kind], "-nodes", "-days", "2", "-subj", subject,
                "-out", certificate, "-keyout", key, *more)

    def pair(self, names, kind="ec"):
        """Files of a certificate for `names` ("DNS:a,IP:127.0.0.1") and of its key."""
        self.count += 1
        certificate = self.folder / f"{self.name}-{self.count}.pem"
        key = self.folder / f"{self.name}-{self.count}.key"
        self.make(certificate, key, "/CN=server", "-CA", self.ca, "-CAkey", self.key, "-addext",
                  f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE",
                  kind=kind)
        return certificate, key

    def server(self, names):
        """A context of a server with such a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.pair(names))
        return context

    def client(self):
        """A context of a client that trusts this authority."""
        return ssl.create_default_context(cafile=self.ca)
