// A trust belongs to all that hold it: the configuration in force through this, and each table of
// origins that workers may still look at.

#include "controlplane/trusts.h"

#include "controlplane/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct trusts {
	uint32_t count; // sites
	struct trust *of[]; // NULL: plain
};

static bool is_same_file(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

// An earlier site's that names the same file; NULL: there is none.
static struct trust *find(
	const struct trusts *trusts, const struct config *config, const char *ca, uint32_t before)
{
	for (uint32_t i = 0; i < before; i++)
		if (trusts->of[i] && is_same_file(config->sites.at[i].origin->tls->ca, ca))
			return trusts->of[i];
	return NULL;
}

int trusts_load(const struct config *config, unsigned workers, struct trusts **trusts)
{
	uint32_t count = config->sites.count;
	char error[TRUST_ERROR_MAX];
	struct trusts *t = calloc(1, sizeof(*t) + count * sizeof(t->of[0]));
	if (!t) {
		log_error("origin.tls: no memory for certificates");
		return -ENOMEM;
	}
	t->count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct config_site *site = &config->sites.at[i];
		if (!site->origin->tls)
			continue;
		struct trust *known = find(t, config, site->origin->tls->ca, i);
		int ret = 0;
		if (known)
			t->of[i] = trust_hold(known);
		else
			ret = trust_create(site->origin->tls->ca, workers, &t->of[i], error);
		if (ret < 0) {
			log_error("site %s: origin.tls.ca: %s", site->name, error);
			trusts_free(t);
			return ret == -ENOMEM ? ret : -EIO;
		}
	}
	*trusts = t;
	return 0;
}

void trusts_free(struct trusts *trusts)
{
	for (uint32_t i = 0; trusts && i < trusts->count; i++)
		trust_give(trusts->of[i]);
	free(trusts);
}

struct trust *trusts_of(const struct trusts *trusts, uint32_t site)
{
	assert(site < trusts->count);
	return trusts->of[site];
}

const char *trusts_error(const char *ca)
{
	static char error[TRUST_ERROR_MAX];
	struct trust *trust;
	if (trust_create(ca, 0, &trust, error) < 0)
		return error;
	trust_give(trust);
	return NULL;
}
