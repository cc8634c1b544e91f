// Codes, as a decision sees them. Files of the decision alone.
#pragma once

#include "dataplane/gate/decide_view.h"

// What becomes of a request to the endpoint of codes (code.h): the page, a claim, or the answer to
// that.
void decide_code(struct decide_view *v);
