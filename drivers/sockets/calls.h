// What the worker asks for: the functions behind drivers/stream.h.
#pragma once

#include "drivers/stream.h"

extern const struct stream_driver_ops calls_ops;
