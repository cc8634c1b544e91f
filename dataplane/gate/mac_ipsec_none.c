// Stands in for mac_ipsec.c where intel-ipsec-mb does not exist: there are no lanes.

#include "dataplane/gate/mac_ipsec.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

int mac_ipsec_create(struct mac_ipsec **lanes)
{
	*lanes = NULL;
	return -ENOTSUP;
}

void mac_ipsec_destroy(struct mac_ipsec *lanes)
{
	assert(!lanes);
}

void mac_ipsec_burst(struct mac_ipsec *lanes, const struct mac_job *jobs, uint32_t count)
{
	(void)lanes;
	(void)jobs;
	assert(count == 0);
}
