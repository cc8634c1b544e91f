"""A step herd: all visitors come within one second, then poll at the interval that they are told.

    start -f herd.py -m 1 -d 120 -t --server 192.0.2.10 --tickets tickets.txt --visitors 100000

Each connects, gets the room's page, and polls on the same connection with a ticket of the file: the
one that the page brings cannot be read. --interval is the `poll_after` that such a crowd is told;
as the queue page does, each waits up to a tenth longer.
"""
import visitor
from trex.astf.api import ASTFProgram

US_PER_S = 1_000_000


class Herd:
    def get_profile(self, tunables, **kwargs):
        parser = visitor.tunables(__doc__)
        visitor.add_tickets(parser)
        parser.add_argument("--visitors", type=int, default=10_000)
        parser.add_argument("--interval", type=float, default=10, help="seconds between polls")
        options = parser.parse_args(tunables)
        programs = [wait_with(poll, options) for poll in visitor.polls(options)]
        return visitor.profile(options, programs, options.visitors, options.visitors)


def wait_with(poll, options):
    shortest = int(options.interval * US_PER_S)
    program = ASTFProgram()
    program.send(visitor.page(options))
    program.delay_rand(shortest, shortest * 11 // 10)
    program.recv(1, True)  # the page has come by now, in several segments, and is counted no more
    visitor.begin_loop(program)
    visitor.ask(program, poll)
    program.delay_rand(shortest, shortest * 11 // 10)
    visitor.end_loop(program)
    return program


def register():
    return Herd()
