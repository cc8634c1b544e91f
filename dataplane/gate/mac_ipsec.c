// HMAC-SHA256 on the lanes of intel-ipsec-mb 1.3.
//
// The burst interface takes an array of jobs and returns when all of them are done; it holds
// nothing back, so one burst is one call and no job outlives it. All that is the same in every job
// is filled in once, when the manager is made. ipsec-mb wants the states after the key blocks as
// eight words of the machine's order, which is what IMB_SHA256_ONE_BLOCK yields and what struct
// mac_key holds. One manager belongs to one worker: it keeps its lanes between calls.
//
// The unchecked variant is used: our jobs differ in three pointers only.

#define NO_COMPAT_IMB_API_053 // without it the header defines names as plain as SHA_256

#include "dataplane/gate/mac_ipsec.h"

#include <assert.h>
#include <errno.h>
#include <intel-ipsec-mb.h>
#include <stdlib.h>

struct mac_ipsec {
	IMB_MGR *manager;
	IMB_JOB jobs[IMB_MAX_BURST_SIZE];
};

static void jobs_init(IMB_JOB *jobs)
{
	for (int i = 0; i < IMB_MAX_BURST_SIZE; i++) {
		jobs[i].cipher_mode = IMB_CIPHER_NULL;
		jobs[i].hash_alg = IMB_AUTH_HMAC_SHA_256;
		jobs[i].chain_order = IMB_ORDER_HASH_CIPHER;
		jobs[i].msg_len_to_hash_in_bytes = MAC_MESSAGE_BYTES;
		jobs[i].auth_tag_output_len_in_bytes = MAC_TAG_BYTES;
	}
}

int mac_ipsec_create(struct mac_ipsec **lanes)
{
	int ret = -ENOMEM;
	struct mac_ipsec *made = calloc(1, sizeof(*made)); // COLD: at start
	if (!made)
		return ret;
	made->manager = alloc_mb_mgr(0);
	if (!made->manager)
		goto fail_made;
	IMB_ARCH arch = IMB_ARCH_NONE;
	init_mb_mgr_auto(made->manager, &arch);
	ret = -ENOTSUP;
	if (arch == IMB_ARCH_NONE || imb_get_errno(made->manager) != 0)
		goto fail_manager;
	jobs_init(made->jobs);
	*lanes = made;
	return 0;

fail_manager:
	free_mb_mgr(made->manager);
fail_made:
	free(made);
	return ret;
}

void mac_ipsec_destroy(struct mac_ipsec *lanes)
{
	if (!lanes)
		return;
	free_mb_mgr(lanes->manager);
	free(lanes);
}

static void burst_of_one_call(struct mac_ipsec *lanes, const struct mac_job *jobs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		IMB_JOB *job = &lanes->jobs[i];
		job->src = jobs[i].message;
		job->auth_tag_output = jobs[i].tag;
		job->u.HMAC._hashed_auth_key_xor_ipad = (const uint8_t *)jobs[i].key->inner;
		job->u.HMAC._hashed_auth_key_xor_opad = (const uint8_t *)jobs[i].key->outer;
	}
	uint32_t done = IMB_SUBMIT_HASH_BURST_NOCHECK(
		lanes->manager, lanes->jobs, count, IMB_AUTH_HMAC_SHA_256);
	assert(done == count);
}

void mac_ipsec_burst(struct mac_ipsec *lanes, const struct mac_job *jobs, uint32_t count)
{
	while (count > 0) {
		uint32_t some = count < IMB_MAX_BURST_SIZE ? count : IMB_MAX_BURST_SIZE;
		burst_of_one_call(lanes, jobs, some);
		jobs += some;
		count -= some;
	}
}
