// Rules of a store that several appliances share.
//
// With the embedded store the keys of a cluster have no effect, and only warnings: a file may be
// made ready for the day when it is shared.

#include "config/check.h"

static void check_password(struct reading *r)
{
	const struct config *config = r->config;
	const char *path = config->store_password_file;
	if (config->store.user && !path)
		reading_fail(r, config, "store", READING_WHOLE,
			"has a user, who needs a password; allowed: with `store_password_file`");
	const char *error =
		path && r->machine->password_error ? r->machine->password_error(path) : NULL;
	if (error)
		reading_fail(r, config, "store_password_file", READING_WHOLE,
			"is no use: %s; allowed: a file of one line", error);
}

static void check_key(struct reading *r)
{
	const struct config_cluster *cluster = r->config->cluster;
	const char *path = cluster ? cluster->key_file : NULL;
	const char *error =
		path && r->machine->cluster_key_error ? r->machine->cluster_key_error(path) : NULL;
	if (!cluster)
		reading_fail(r, r->config, "store", READING_WHOLE,
			"is shared, and needs a name and a key; allowed: with `cluster`");
	if (error)
		reading_fail(r, cluster, "key_file", READING_WHOLE,
			"is no use: %s; allowed: 64 hex digits, mode 0600", error);
}

static void warn_no_effect(struct reading *r)
{
	static const char why[] = "has no effect on an embedded store";
	const struct config *config = r->config;
	if (config->store_password_file)
		reading_warn(r, config, "store_password_file", READING_WHOLE, why);
	if (config->cluster)
		reading_warn(r, config, "cluster", READING_WHOLE, why);
	for (uint32_t i = 0; i < config->sites.count; i++)
		for (uint32_t j = 0; j < config->sites.at[i].rooms.count; j++) {
			const struct config_room *room = &config->sites.at[i].rooms.at[j];
			if (room->on_store_loss != CONFIG_ON_STORE_LOSS_HOLD)
				reading_warn(r, room, "on_store_loss", READING_WHOLE, why);
		}
}

void check_cluster(struct reading *r)
{
	if (r->config->store.kind == CONFIG_STORE_EMBEDDED) {
		warn_no_effect(r);
		return;
	}
	check_password(r);
	check_key(r);
}
