"""New arrivals: connect, GET the room's page as a browser does, take all of it, close.

    start -f arrivals.py -m 20000 -d 30 -t --server 192.0.2.10     (20,000 newcomers a second)

The page's length varies, and ASTF cannot read it from the head: the request says
`Connection: close`, and the appliance's close is the end of the page.
"""
import visitor
from trex.astf.api import ASTFProgram


class Arrivals:
    def get_profile(self, tunables, **kwargs):
        options = visitor.tunables(__doc__).parse_args(tunables)
        program = ASTFProgram()
        program.send(visitor.page(options, {"Connection": "close"}))
        program.wait_for_peer_close()
        return visitor.profile(options, [program], rate=1)


def register():
    return Arrivals()
