// Where visitors find a site is not always said: a proxy before us may have another port and TLS of
// its own. So a listener with certificates is what they use, or that of the site's redirect; where
// a proxy is trusted, or speaks the PROXY protocol, they are taken to come to it over https; else
// they come as plainly as we listen.

#include "controlplane/invite.h"

#include "controlplane/turn.h"

#include <stdio.h>
#include <string.h>

#define LINK_BYTES_MAX 4096u

static const struct config_site *site_of(const struct control *c, const struct config_room *room)
{
	for (uint32_t i = 0; i < c->config->sites.count; i++) {
		const struct config_site *site = &c->config->sites.at[i];
		if (room >= site->rooms.at && room < site->rooms.at + site->rooms.count)
			return site;
	}
	return NULL;
}

// A name of the site that somebody can go to: of one that is a wildcard, `www` stands for any.
static const char *host_of(const struct config_site *site, const char **prefix)
{
	*prefix = "";
	for (uint32_t i = 0; i < site->hosts.count; i++)
		if (site->hosts.at[i][0] != '*')
			return site->hosts.at[i];
	*prefix = "www";
	return site->hosts.at[0] + 1;
}

static uint16_t port_of(const struct control *c, const struct config_site *site, bool *is_secure)
{
	const struct config_listens *listens = &c->config->listen;
	const struct config_listen *plain = NULL;
	bool is_behind = c->config->trusted_proxies.count > 0;
	*is_secure = true;
	if (site->https == CONFIG_HTTPS_REDIRECT)
		return (uint16_t)site->https_port;
	for (uint32_t i = 0; i < listens->count; i++) {
		if (listens->at[i].tls.count > 0)
			return listens->at[i].address.port;
		is_behind |= listens->at[i].proxy_protocol;
		plain = plain ? plain : &listens->at[i];
	}
	*is_secure = is_behind || !plain;
	return *is_secure ? 443 : plain->address.port;
}

static void print_origin(const struct control *c, const struct config_site *site, FILE *out)
{
	bool is_secure;
	const char *prefix, *host = host_of(site, &prefix);
	const uint16_t port = port_of(c, site, &is_secure);
	fprintf(out, "%s://%s%s", is_secure ? "https" : "http", prefix, host);
	if (port != (is_secure ? 443 : 80))
		fprintf(out, ":%u", port);
}

json_t *invite_link(struct control *c, const struct control_room *lane, uint32_t expires)
{
	const struct snapshot *snapshot = atomic_load(&c->words.current);
	char text[TOKEN_TEXT_BYTES], link[LINK_BYTES_MAX] = "";
	struct token token = {.kind = TOKEN_INVITATION,
		.line_id = lane->line_id,
		.key = turn_seams.session_id(c),
		.issued = (uint32_t)(clock_now_ms(&c->clock) / 1000),
		.expires = expires};
	FILE *out = fmemopen(link, sizeof(link), "w");
	if (!out)
		return NULL;
	token_sign(&snapshot->secrets, &token, text);
	print_origin(c, site_of(c, lane->config), out);
	fprintf(out, "%s?sluice_lane=%.*s", lane->config->path, (int)TOKEN_TEXT_BYTES, text);
	fclose(out);
	return json_pack("{s:s, s:s, s:o}", "lane", lane->name, "link", link, "expires",
		expires > 0 ? json_integer(expires) : json_null());
}
