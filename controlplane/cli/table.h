// JSON as people read it in a terminal.
#pragma once

#include <jansson.h>
#include <stdio.h>

// A list of objects as a grid, one row each, with the columns of the first; an object as a column
// of names and values, its inner objects' as `outer.inner`; anything else as one line. Numbers
// stand to the right. Control characters are shown as '?'.
//   width  of the terminal, to which lines are cut; 0: they are not
void table_print(const json_t *data, unsigned width, FILE *out);
