// The target of a request, in its four forms (RFC 9112 3.2).
#pragma once

#include "dataplane/http/head.h"

// Take `sent`, the target of a request whose method is set, apart into head's target, authority and
// absolute_form. `sent` has only OCTET_TARGET in it, at least one. Returns false when it is in none
// of the forms, or in one that the method may not have. OPTIONS of an absolute form without a path
// is about the server as a whole: its target is `*` (9112 3.2.4). Pure; any thread.
bool target_parse(struct http_head *head, struct span sent);
