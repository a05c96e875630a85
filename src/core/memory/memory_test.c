/* SPDX-License-Identifier: MIT */
#include "core/memory/memory_fixture_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FUZZ_ROUNDS 20000

static uint64_t allocated(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

static uint64_t file_bytes(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_size;
}

static void test_memory__sizes_stay_within_the_total(void **state)
{
	static const uint64_t totals[] = {
		MEMORY_BYTES_MIN,     MEMORY_BYTES_MIN + 1,	12345678,   100000007,
		MEMORY_BYTES_DEFAULT, MEMORY_BYTES_DEFAULT - 1, 3ull << 30, 64ull << 30};

	(void)state;
	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		struct memory_sizes sizes = memory_sizes_for(totals[i]);
		struct fixture fixture = fixture_make(&sizes);

		assert_true(file_bytes(fixture.fd) <= totals[i]);
		/* and little of it is given away */
		assert_true(file_bytes(fixture.fd) > totals[i] - 2 * 4096);
		assert_true(sizes.text_bytes > totals[i] / 50);
		fixture_release(&fixture);
	}
}

static void test_memory__default_bounds(void **state)
{
	struct memory_sizes sizes = memory_sizes_for(MEMORY_BYTES_DEFAULT);

	(void)state;
	assert_int_equal(sizes.nr_slots, 1024);
	assert_int_equal(sizes.packet_bytes, 16384);
	assert_int_equal((uint64_t)sizes.nr_packets * 16384, MEMORY_BYTES_DEFAULT / 4);
	assert_true(sizes.nr_nodes >= 1000000);
	assert_true(sizes.nr_codes > 100000);
}

static void test_memory__a_new_memory_is_sparse(void **state)
{
	struct memory_sizes sizes = memory_sizes_for(MEMORY_BYTES_DEFAULT);
	struct fixture fixture = fixture_make(&sizes);

	(void)state;
	assert_true(allocated(fixture.fd) <= 16384);
	fixture_release(&fixture);
}

static void test_memory__mappings_share(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory other;
	struct errbuf err;
	uint32_t node;

	(void)state;
	assert_int_equal(memory_map(fixture.fd, &other, &err), 0);
	assert_ptr_not_equal(other.header, fixture.memory.header);
	node = table_node(&fixture.memory, 0, 0, node_where(NODE_NATIVE, 0, 5));
	assert_int_equal(table_node(&other, 0, 0, node_where(NODE_NATIVE, 0, 5)), node);
	memory_unmap(&other);
	assert_null(other.header);
	memory_unmap(&other);
	fixture_release(&fixture);
}

static void test_memory__regions_follow_each_other(void **state)
{
	struct memory_sizes sizes = small_sizes();
	struct fixture fixture = fixture_make(&sizes);
	struct memory *m = &fixture.memory;

	(void)state;
	assert_true((uint8_t *)m->slots >= (uint8_t *)(m->header + 1));
	assert_true(m->packets >= (uint8_t *)(m->slots + sizes.nr_slots));
	assert_true((uint8_t *)m->nodes >=
		    m->packets + (size_t)sizes.nr_packets * sizes.packet_bytes);
	assert_true((uint8_t *)m->node_index >= (uint8_t *)(m->nodes + sizes.nr_nodes));
	assert_true((uint8_t *)m->codes >= (uint8_t *)(m->node_index + sizes.node_index_slots));
	assert_true((uint8_t *)m->code_index >= (uint8_t *)(m->codes + sizes.nr_codes));
	assert_true((uint8_t *)m->modules >= (uint8_t *)(m->code_index + sizes.code_index_slots));
	assert_true((uint8_t *)m->processes >= (uint8_t *)(m->modules + sizes.nr_modules));
	assert_true(m->text >= (uint8_t *)(m->processes + sizes.nr_processes));
	assert_true(m->text + sizes.text_bytes <= (uint8_t *)m->header + m->header->total_bytes);
	assert_int_equal((uintptr_t)m->packets % 4096, 0);
	assert_int_equal((uintptr_t)m->slots % 64, 0);
	fixture_release(&fixture);
}

static void test_memory__size_is_sealed(void **state)
{
	struct fixture fixture = fixture_small();

	(void)state;
	assert_int_equal(ftruncate(fixture.fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(fixture.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	fixture_release(&fixture);
}

static void test_memory__is_not_in_core_dumps(void **state)
{
	struct fixture fixture = fixture_small();
	char line[512], address[32];
	bool inside = false, found = false;
	FILE *smaps = fopen("/proc/self/smaps", "re");

	(void)state;
	assert_non_null(smaps);
	snprintf(address, sizeof(address), "%lx-", (unsigned long)(uintptr_t)fixture.memory.header);
	while (fgets(line, sizeof(line), smaps)) {
		inside = inside || strncmp(line, address, strlen(address)) == 0;
		if (inside && strncmp(line, "VmFlags:", 8) == 0) {
			found = strstr(line, " dd") != NULL;
			break;
		}
	}
	fclose(smaps);
	assert_true(found);
	fixture_release(&fixture);
}

static void test_memory__unsound_bounds_make_nothing(void **state)
{
	struct memory_sizes good = small_sizes(), bad[8];
	struct memory memory = {.text = (uint8_t *)7};
	struct errbuf err;
	int fd = 77;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		bad[i] = good;
	bad[0].nr_slots = 0;
	bad[1].nr_packets = 0;
	bad[2].packet_bytes = 4095;
	bad[3].packet_bytes = 0;
	bad[4].node_index_slots = 1024;
	bad[5].node_index_slots = 2049;
	bad[6].code_index_slots = 64;
	bad[7].text_bytes = UINT64_MAX;
	for (size_t i = 0; i < 8; i++) {
		err.text[0] = 0;
		assert_int_equal(memory_create(&bad[i], &memory, &fd, &err), -EINVAL);
		assert_true(err.text[0] != 0);
		assert_int_equal(fd, 77);
		assert_int_equal((uintptr_t)memory.text, 7);
	}
}

/* An unsealed file with the header of a good memory, @total bytes long. */
static int forge(const struct memory_header *header, uint64_t total)
{
	int fd = memfd_create("forged", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)total), 0);
	assert_int_equal(pwrite(fd, header, sizeof(*header), 0), sizeof(*header));
	return fd;
}

static int map_forged(const struct memory_header *header, uint64_t total)
{
	struct memory memory = {.text = (uint8_t *)7};
	struct errbuf err = {0};
	int fd = forge(header, total);
	int result = memory_map(fd, &memory, &err);

	if (result == 0) {
		memory_unmap(&memory);
	} else {
		assert_int_equal((uintptr_t)memory.text, 7);
		assert_true(err.text[0] != 0);
	}
	close(fd);
	return result;
}

static void test_memory__hostile_headers_are_refused(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory_header good;
	static const size_t fields[] = {
		offsetof(struct memory_header, magic),
		offsetof(struct memory_header, version),
		offsetof(struct memory_header, header_bytes),
		offsetof(struct memory_header, total_bytes),
		offsetof(struct memory_header, sizes.nr_slots),
		offsetof(struct memory_header, sizes.nr_packets),
		offsetof(struct memory_header, sizes.packet_bytes),
		offsetof(struct memory_header, sizes.nr_nodes),
		offsetof(struct memory_header, sizes.node_index_slots),
		offsetof(struct memory_header, sizes.nr_codes),
		offsetof(struct memory_header, sizes.code_index_slots),
		offsetof(struct memory_header, sizes.text_bytes),
		offsetof(struct memory_header, slots_at),
		offsetof(struct memory_header, packets_at),
		offsetof(struct memory_header, nodes_at),
		offsetof(struct memory_header, node_index_at),
		offsetof(struct memory_header, codes_at),
		offsetof(struct memory_header, code_index_at),
		offsetof(struct memory_header, modules_at),
		offsetof(struct memory_header, processes_at),
		offsetof(struct memory_header, text_at),
		offsetof(struct memory_header, nr_events),
	};
	/* Written over 32 bits: zero, far too large, and moved by less than a page up or down. */
	static const uint32_t steps[] = {0x40000000, 0x80000000, 0x7ffffff0};

	(void)state;
	memcpy(&good, fixture.memory.header, sizeof(good));
	assert_int_equal(map_forged(&good, good.total_bytes), 0);
	assert_int_equal(map_forged(&good, good.total_bytes - 4096), -EINVAL);
	assert_int_equal(map_forged(&good, good.total_bytes + 4096), -EINVAL);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
			struct memory_header bad;
			uint32_t value;

			memcpy(&bad, &good, sizeof(bad));
			memcpy(&value, (uint8_t *)&bad + fields[i], sizeof(value));
			value += steps[step];
			memcpy((uint8_t *)&bad + fields[i], &value, sizeof(value));
			assert_int_equal(map_forged(&bad, good.total_bytes), -EINVAL);
		}
	}
	fixture_release(&fixture);
}

/* Products and sums that pass 64 bits must not come out small. */
static void test_memory__overflowing_bounds_are_refused(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory_header bad;

	(void)state;
	memcpy(&bad, fixture.memory.header, sizeof(bad));
	bad.sizes.text_bytes = UINT64_MAX - 4095;
	bad.total_bytes = bad.text_at - 4096;
	assert_int_equal(map_forged(&bad, bad.total_bytes), -EINVAL);
	fixture_release(&fixture);
}

/* Whatever a header says, mapping it fails or every region lies inside. */
static void test_memory__fuzzed_headers(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory_header good;
	uint64_t random = 88172645463325252ull;

	(void)state;
	memcpy(&good, fixture.memory.header, sizeof(good));
	for (unsigned int round = 0; round < FUZZ_ROUNDS; round++) {
		struct memory_header bad;
		struct memory memory;
		struct errbuf err;
		int fd;

		memcpy(&bad, &good, sizeof(bad));
		for (unsigned int i = 0; i <= round % 4; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			((uint8_t *)&bad)[random % offsetof(struct memory_header, events)] ^=
				(uint8_t)(1 << (random >> 32) % 8);
		}
		fd = forge(&bad, good.total_bytes);
		if (memory_map(fd, &memory, &err) == 0) {
			const struct memory_sizes *sizes = &memory.header->sizes;
			uint8_t *end = (uint8_t *)memory.header + good.total_bytes;

			assert_true(memory.text + sizes->text_bytes <= end);
			assert_true((uint8_t *)(memory.slots + sizes->nr_slots) <= end);
			if (sizes->text_bytes)
				memory.text[sizes->text_bytes - 1] = 1;
			memory_unmap(&memory);
		}
		close(fd);
	}
	fixture_release(&fixture);
}

static void test_memory__other_files_are_refused(void **state)
{
	struct memory memory;
	struct errbuf err;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(memory_map(fd, &memory, &err), -EINVAL);
	close(fd);
	assert_int_equal(memory_map(fd, &memory, &err), -EBADF);
}

/* Bytes from @start on that are there already, in whole pages. */
static uint64_t resident(void *start, uint64_t bytes)
{
	unsigned char pages[2048];
	uint64_t number = bytes / 4096, present = 0;

	assert_true(number <= sizeof(pages));
	assert_int_equal(mincore(start, bytes, pages), 0);
	while (present < number && pages[present] & 1)
		present++;
	return present * 4096;
}

static void test_memory__prefault_ahead_keeps_before_the_tails(void **state)
{
	struct memory_sizes sizes = memory_sizes_for(64 << 20);
	struct fixture fixture = fixture_make(&sizes);
	struct memory *memory = &fixture.memory;
	struct memory_ahead ahead = {0};
	uint64_t used = 1 << 20, start;

	(void)state;
	if (sysconf(_SC_PAGESIZE) != 4096 ||
	    madvise(memory->header, 4096, 23 /* MADV_POPULATE_WRITE */) != 0)
		skip(); /* other pages, or a kernel before 5.14 */
	memory_prefault_ahead(memory, &ahead);
	start = allocated(fixture.fd);
	assert_in_range(start, 4096 + 3 * 16384, 128 << 10); /* a start costs little */
	memory_prefault_ahead(memory, &ahead);
	assert_int_equal(allocated(fixture.fd), start);

	atomic_store(&memory->header->text_used, used);
	memory_prefault_ahead(memory, &ahead);
	assert_in_range(resident(memory->text, 4 << 20), 2 * used, 3 * used);
	assert_int_equal(resident(memory->code_index, 4096), 0);

	/* Tails beyond their bound, and an index that is touched at random. */
	atomic_store(&memory->header->text_used, UINT64_MAX);
	atomic_store(&memory->header->codes_used, UINT32_MAX);
	memory_prefault_ahead(memory, &ahead);
	assert_int_equal(resident(memory->code_index, sizes.code_index_slots * 4),
			 sizes.code_index_slots * 4);
	fixture_release(&fixture);
}

static void test_memory__prefault_takes_the_start_of_every_region(void **state)
{
	struct memory_sizes sizes = memory_sizes_for(MEMORY_BYTES_MIN);
	struct fixture fixture = fixture_make(&sizes);

	(void)state;
	if (sysconf(_SC_PAGESIZE) != 4096 ||
	    madvise(fixture.memory.header, 4096, 23 /* MADV_POPULATE_WRITE */) != 0)
		skip(); /* other pages, or a kernel before 5.14 */
	memory_prefault(&fixture.memory, 2);
	/* The header has one page, nine regions have more. */
	assert_int_equal(allocated(fixture.fd), (1 + 9 * 2) * 4096);
	/* More pages than a region has are no error and reach no further. */
	memory_prefault(&fixture.memory, 1u << 20);
	assert_int_equal(allocated(fixture.fd), file_bytes(fixture.fd));
	fixture_release(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__sizes_stay_within_the_total),
		cmocka_unit_test(test_memory__default_bounds),
		cmocka_unit_test(test_memory__a_new_memory_is_sparse),
		cmocka_unit_test(test_memory__mappings_share),
		cmocka_unit_test(test_memory__regions_follow_each_other),
		cmocka_unit_test(test_memory__size_is_sealed),
		cmocka_unit_test(test_memory__is_not_in_core_dumps),
		cmocka_unit_test(test_memory__unsound_bounds_make_nothing),
		cmocka_unit_test(test_memory__hostile_headers_are_refused),
		cmocka_unit_test(test_memory__overflowing_bounds_are_refused),
		cmocka_unit_test(test_memory__fuzzed_headers),
		cmocka_unit_test(test_memory__other_files_are_refused),
		cmocka_unit_test(test_memory__prefault_ahead_keeps_before_the_tails),
		cmocka_unit_test(test_memory__prefault_takes_the_start_of_every_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
