// OpenSSL's AES-256-GCM, one context a record: they are few, and a context that is kept would hold
// the key's schedule in memory that is not locked.

#include "controlplane/store/seal.h"

#include "controlplane/private_file.h"
#include "controlplane/store/locked.h"

#include <openssl/evp.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define VERSION 1
#define NONCE_BYTES 12
#define TAG_BYTES 16
#define KEY_DIGITS (2 * SEAL_KEY_BYTES)

static_assert(SEAL_OVERHEAD_BYTES == 1 + NONCE_BYTES + TAG_BYTES, "as the header says");

struct seal {
	uint8_t key[SEAL_KEY_BYTES];
	char digits[KEY_DIGITS + 2]; // as read; wiped once read
};

static int fail(char *error, const char *path, const char *what, int ret)
{
	snprintf(error, SEAL_TEXT_BYTES, "%s: %s", path, what);
	return ret;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digits(struct seal *seal, ssize_t bytes)
{
	bool has_end = bytes == KEY_DIGITS + 1 && seal->digits[KEY_DIGITS] == '\n';
	if (bytes != KEY_DIGITS && !has_end)
		return false;
	for (size_t i = 0; i < SEAL_KEY_BYTES; i++) {
		int high = digit(seal->digits[2 * i]), low = digit(seal->digits[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		seal->key[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static int read_file(struct seal *seal, int fd, const char *path, char *error)
{
	const char *wrong = private_file_fault(fd);
	if (wrong)
		return fail(error, path, wrong, -EPERM);
	ssize_t bytes = read(fd, seal->digits, sizeof(seal->digits));
	if (bytes < 0)
		return fail(error, path, strerror(errno), -errno);
	bool is_key = read_digits(seal, bytes);
	explicit_bzero(seal->digits, sizeof(seal->digits));
	return is_key ? 0 : fail(error, path, "is not 64 hex digits", -EINVAL);
}

int seal_create(const char *path, struct seal **seal, char *error)
{
	struct seal *s = locked_take(sizeof(*s));
	if (!s)
		return fail(error, path, strerror(ENOMEM), -ENOMEM);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is refused, not waited for
	int ret =
		fd < 0 ? fail(error, path, strerror(errno), -errno) : read_file(s, fd, path, error);
	if (fd >= 0)
		close(fd);
	if (ret < 0) {
		seal_destroy(s);
		return ret;
	}
	*seal = s;
	return 0;
}

void seal_destroy(struct seal *seal)
{
	locked_give(seal, sizeof(*seal));
}

const char *seal_key_error(const char *path)
{
	static char error[SEAL_TEXT_BYTES];
	struct seal *seal = NULL;
	int ret = seal_create(path, &seal, error);
	seal_destroy(seal);
	return ret < 0 ? error : NULL;
}

// The kind ends with a zero, so that no kind and id are those of another pair.
static bool add_names(EVP_CIPHER_CTX *cipher, const char *kind, const char *id)
{
	size_t kind_bytes = strlen(kind) + 1, id_bytes = strlen(id);
	int added;
	assert(kind_bytes <= SEAL_NAME_BYTES_MAX + 1 && id_bytes <= SEAL_NAME_BYTES_MAX);
	return EVP_CipherUpdate(cipher, NULL, &added, (const uint8_t *)kind, (int)kind_bytes) &&
	       EVP_CipherUpdate(cipher, NULL, &added, (const uint8_t *)id, (int)id_bytes);
}

static EVP_CIPHER_CTX *begin(const struct seal *seal, const char *kind, const char *id,
	const uint8_t *nonce, bool closes)
{
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	if (cipher &&
		EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, seal->key, nonce, closes) &&
		add_names(cipher, kind, id))
		return cipher;
	EVP_CIPHER_CTX_free(cipher);
	return NULL;
}

int seal_close(const struct seal *seal, const char *kind, const char *id, const void *plain,
	size_t bytes, uint8_t *record)
{
	uint8_t *nonce = record + 1, *text = nonce + NONCE_BYTES;
	int done, rest;
	assert(bytes <= SEAL_PLAIN_BYTES_MAX);
	record[0] = VERSION;
	if (getrandom(nonce, NONCE_BYTES, 0) != NONCE_BYTES)
		return -EIO;
	EVP_CIPHER_CTX *cipher = begin(seal, kind, id, nonce, true);
	bool is_closed = cipher && EVP_CipherUpdate(cipher, text, &done, plain, (int)bytes) &&
			 EVP_CipherFinal_ex(cipher, text + done, &rest) &&
			 EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, text + bytes);
	EVP_CIPHER_CTX_free(cipher);
	return is_closed ? 0 : -EIO;
}

enum seal_result seal_open(const struct seal *seal, const char *kind, const char *id,
	const uint8_t *record, size_t bytes, uint8_t *plain)
{
	if (bytes < SEAL_OVERHEAD_BYTES || bytes > SEAL_PLAIN_BYTES_MAX + SEAL_OVERHEAD_BYTES)
		return SEAL_SHORT;
	if (record[0] != VERSION)
		return SEAL_VERSION;
	const uint8_t *nonce = record + 1, *text = nonce + NONCE_BYTES;
	size_t plain_bytes = bytes - SEAL_OVERHEAD_BYTES;
	int done, rest;
	uint8_t tag[TAG_BYTES];
	memcpy(tag, text + plain_bytes, TAG_BYTES);
	EVP_CIPHER_CTX *cipher = begin(seal, kind, id, nonce, false);
	if (!cipher)
		return SEAL_FAILED;
	bool is_right = EVP_CipherUpdate(cipher, plain, &done, text, (int)plain_bytes) &&
			EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) &&
			EVP_CipherFinal_ex(cipher, plain + done, &rest) == 1;
	EVP_CIPHER_CTX_free(cipher);
	if (!is_right)
		explicit_bzero(plain, plain_bytes);
	return is_right ? SEAL_OPEN : SEAL_WRONG;
}

const char *seal_result_text(enum seal_result result)
{
	static const char *const texts[] = {[SEAL_OPEN] = "is open",
		[SEAL_SHORT] = "is no sealed record",
		[SEAL_VERSION] = "was sealed by a later version",
		[SEAL_WRONG] = "was sealed with another key or for another place, or is damaged",
		[SEAL_FAILED] = "could not be opened for want of memory"};
	return texts[result];
}
