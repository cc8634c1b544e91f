"""Status polls on kept connections, each as soon as the one before is answered.

    start -f polls.py -m 1 -d 60 -t --server 192.0.2.10 --tickets tickets.txt --connections 10000

All connections are opened in the first second and stay. Each carries two tickets by turns, so that
every MAC is computed; with --each 1 it carries one, which the appliance remembers.
"""
import visitor
from trex.astf.api import ASTFProgram


class Polls:
    def get_profile(self, tunables, **kwargs):
        parser = visitor.tunables(__doc__)
        visitor.add_tickets(parser)
        parser.add_argument("--connections", type=int, default=10_000)
        parser.add_argument("--each", type=int, default=2, help="tickets on one connection")
        options = parser.parse_args(tunables)
        polls = visitor.polls(options)
        if len(polls) < options.each:
            raise ValueError(f"{options.tickets}: only {len(polls)} tickets")
        programs = [poll_with(polls[first:first + options.each])
                    for first in range(0, len(polls) - options.each + 1, options.each)]
        return visitor.profile(options, programs, options.connections, options.connections)


def poll_with(polls):
    program = ASTFProgram()
    visitor.begin_loop(program)
    for poll in polls:
        visitor.ask(program, poll)
    visitor.end_loop(program)
    return program


def register():
    return Polls()
