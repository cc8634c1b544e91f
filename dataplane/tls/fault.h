// Why TLS with a peer failed, in one number, so that a worker can leave it for control to say.
#pragma once

#include <stdint.h>

// 0: nothing is wrong. Otherwise one of these; or an X509_V_ERR_... (of the certificate, below
// 2^16); or an error code of OpenSSL's queue (a library in its bits from 23 on).
enum fault {
	FAULT_CUT = 1 << 16, // the connection ended within the handshake
	FAULT_LATE, // the handshake was not done in time
	FAULT_UNKNOWN, // OpenSSL gave no reason
};

// A few words for the log: "certificate has expired". Static; any thread.
const char *fault_text(uint32_t fault);
