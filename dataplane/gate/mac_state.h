// MACs one by one, from saved SHA-256 states.
#pragma once

#include <stdint.h>

#include "dataplane/gate/mac.h"

// The tag of one message (MAC_MESSAGE_BYTES). Pure; any thread.
void mac_state_tag(const struct mac_key *key, const uint8_t *message, uint8_t *tag);

// The tags of `count` jobs. Pure; any thread.
void mac_state_burst(const struct mac_job *jobs, uint32_t count);

// The first 8 bytes of HMAC-SHA256 over 8 bytes, both as big-endian numbers. Pure; any thread.
uint64_t mac_state_word(const struct mac_key *key, uint64_t message);
