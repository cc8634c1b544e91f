// The origin's side of an exchange.
#pragma once

struct exchange;
struct stream_event;

// Take in an event of the exchange's connection. May end the exchange.
void answer_event(struct exchange *exchange, const struct stream_event *event);
