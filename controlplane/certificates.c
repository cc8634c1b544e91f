// An identity belongs to all that hold it: what is in force through this, and each snapshot that
// workers may still look at. Listeners with the same list share one.

#include "controlplane/certificates.h"

#include "controlplane/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct certificates {
	uint32_t count; // listeners
	struct identity *of[]; // NULL: plain
};

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_list(const struct config_certificates *a, const struct config_certificates *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!is_same_text(a->at[i].certificate, b->at[i].certificate) ||
			!is_same_text(a->at[i].key, b->at[i].key) ||
			!is_same_text(a->at[i].ocsp, b->at[i].ocsp))
			return false;
	return true;
}

static const struct config_listen *find_listen(
	const struct config *config, const struct config_address *address)
{
	for (uint32_t i = 0; i < config->listen.count; i++) {
		const struct config_address *other = &config->listen.at[i].address;
		if (other->port == address->port &&
			memcmp(other->ip, address->ip, sizeof(other->ip)) == 0)
			return &config->listen.at[i];
	}
	return NULL;
}

static int read_list(
	const struct config_listen *listen, unsigned workers, struct identity **identity)
{
	struct identity_files files[IDENTITY_CERTIFICATES_MAX];
	struct identity_fault fault;
	const struct config_certificates *list = &listen->tls;
	assert(list->count <= IDENTITY_CERTIFICATES_MAX);
	for (uint32_t i = 0; i < list->count; i++)
		files[i] = (struct identity_files){
			list->at[i].certificate, list->at[i].key, list->at[i].ocsp};
	int ret = identity_create(files, list->count, workers, identity, &fault);
	if (ret < 0)
		log_error("listen %s: tls: %s", listen->address.text, fault.text);
	return ret;
}

// The identity of one listener. `found` are those of the listeners before it.
static int load_one(const struct config *started, const struct config *next,
	const struct certificates *before, unsigned workers, struct certificates *found)
{
	uint32_t index = found->count;
	const struct config_listen *listen = find_listen(next, &started->listen.at[index].address);
	if (!listen) {
		if (before && before->of[index])
			found->of[index] = identity_hold(before->of[index]);
		return 0;
	}
	if (listen->tls.count == 0)
		return 0;
	for (uint32_t i = 0; i < index; i++) {
		const struct config_listen *other =
			find_listen(next, &started->listen.at[i].address);
		if (other && is_same_list(&other->tls, &listen->tls)) {
			found->of[index] = identity_hold(found->of[i]);
			return 0;
		}
	}
	return read_list(listen, workers, &found->of[index]);
}

int certificates_load(const struct config *started, const struct config *next,
	const struct certificates *before, unsigned workers, struct certificates **certificates)
{
	struct certificates *c = calloc(1, sizeof(*c) + started->listen.count * sizeof(c->of[0]));
	if (!c) {
		log_error("listen.tls: no memory for certificates");
		return -ENOMEM;
	}
	for (; c->count < started->listen.count; c->count++) {
		int ret = load_one(started, next, before, workers, c);
		if (ret < 0) {
			certificates_free(c);
			return ret;
		}
	}
	*certificates = c;
	return 0;
}

void certificates_free(struct certificates *certificates)
{
	for (uint32_t i = 0; certificates && i < certificates->count; i++)
		identity_give(certificates->of[i]);
	free(certificates);
}

struct identity *certificates_of(const struct certificates *certificates, uint32_t listener)
{
	return listener < certificates->count ? certificates->of[listener] : NULL;
}

bool certificates_fault(const struct config_certificate *files, struct config_fault *fault)
{
	static const char *const keys[] = {[IDENTITY_CERTIFICATE] = "certificate",
		[IDENTITY_KEY] = "key",
		[IDENTITY_OCSP] = "ocsp"};
	struct identity_files of = {files->certificate, files->key, files->ocsp};
	struct identity_fault found;
	int ret = identity_check(&of, &found);
	fault->key = keys[found.part];
	fault->is_warning = ret > 0;
	snprintf(fault->text, sizeof(fault->text), "%s%s", found.text,
		ret == -EACCES ? " (a running sluice reads it as its user: chgrp and chmod g+r)"
			       : "");
	return ret != 0;
}

void certificates_warn_unreadable(const struct config *config)
{
	for (uint32_t i = 0; i < config->listen.count; i++)
		for (uint32_t j = 0; j < config->listen.at[i].tls.count; j++) {
			const struct config_certificate *files = &config->listen.at[i].tls.at[j];
			const char *paths[] = {files->certificate, files->key, files->ocsp};
			for (int k = 0; k < 3; k++)
				if (paths[k] && access(paths[k], R_OK) < 0)
					log_warning(
						"%s: %s: a reload will fail (chgrp and chmod g+r)",
						paths[k], strerror(errno));
		}
}
