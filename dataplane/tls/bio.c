// A BIO of our own instead of OpenSSL's in memory, which copies once more and grows with what it is
// given. Here a bound is a failed write.

#include "dataplane/tls/bio.h"

static int read_event(BIO *bio, char *to, int room)
{
	struct bio_stream *stream = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	size_t len = stream->in.len < (size_t)room ? stream->in.len : (size_t)room;
	if (len == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(to, stream->in.at, len);
	stream->in = span_from(stream->in, len);
	return (int)len;
}

// Whether the peer has made us answer more than it takes.
static bool is_flood(struct bio_stream *stream, size_t len)
{
	if (stream->is_asked)
		return false;
	if (stream_queued(stream->inner_driver, stream->inner) == 0)
		stream->reply_bytes = 0;
	stream->reply_bytes += len;
	return stream->reply_bytes > BIO_REPLY_BYTES_MAX;
}

static int write_through(BIO *bio, const char *from, int len)
{
	struct bio_stream *stream = BIO_get_data(bio);
	struct span part = {from, (size_t)len};
	BIO_clear_retry_flags(bio);
	if (stream->is_shut)
		return len;
	if (is_flood(stream, part.len) ||
		stream_write(stream->inner_driver, stream->inner, &part, 1) < part.len) {
		stream->is_full = true;
		return -1;
	}
	return len;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH; // all is written; nothing else is supported
}

BIO_METHOD *bio_methods(void)
{
	BIO_METHOD *methods = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "stream");
	if (!methods)
		return NULL;
	BIO_meth_set_read(methods, read_event);
	BIO_meth_set_write(methods, write_through);
	BIO_meth_set_ctrl(methods, control);
	return methods;
}

BIO *bio_new(const BIO_METHOD *methods, struct bio_stream *stream)
{
	BIO *bio = BIO_new(methods);
	if (!bio)
		return NULL;
	BIO_set_data(bio, stream);
	BIO_set_init(bio, 1);
	return bio;
}
