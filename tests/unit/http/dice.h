// Reproducible chance. The seed comes from SLUICE_SEED or the clock, and is printed.
#pragma once

#include <stdint.h>

// Begin anew and print the seed.
void dice_begin(void);

// A number below `below`, which is above 0.
uint32_t dice(uint32_t below);
