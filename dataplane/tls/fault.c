// OpenSSL knows words for all that it knows numbers for; what remains is ours.

#include "dataplane/tls/fault.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

const char *fault_text(uint32_t fault)
{
	if (fault == FAULT_CUT)
		return "the connection ended within the handshake";
	if (fault == FAULT_LATE)
		return "the handshake was not done in time";
	if (fault < FAULT_CUT)
		return X509_verify_cert_error_string(fault);
	const char *reason = ERR_reason_error_string(fault);
	return reason ? reason : "the handshake failed";
}
