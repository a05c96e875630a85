/* SPDX-License-Identifier: MIT */
/*
 * The recording's memory: its bounds, its layout, making and mapping it.
 *
 * Where the regions lie follows from the bounds alone (lay_out()), so a mapping is checked by
 * laying out again what its header claims: one comparison for each offset, and no offset can
 * point outside. The file is sealed against changes of its size, so that nobody's truncation can
 * become a SIGBUS in the target.
 */
#include "core/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3; not in Debian 12's headers */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define REGION_ALIGN	 4096
#define MEMORY_BYTES_MAX (64ull << 30) /* beyond it the index of nodes outgrows 32 bits */
#define AHEAD_MIN	 (16u << 10)   /* at hand beyond the tail of a region */
#define AHEAD_MAX	 (1u << 20)
#define AHEAD_CODES	 64    /* codes from which on the index is made ready */
#define PACKET_BYTES	 16384 /* 1013 samples: four seconds at 250 Hz */

/* Bytes of the total for one of each. Together about 85 %, the rest is text. */
#define TOTAL_PER_SLOT	     (256u << 10)
#define TOTAL_PER_PACKET     (4u * PACKET_BYTES)
#define TOTAL_PER_NODE_INDEX 64u
#define TOTAL_PER_CODE_INDEX 1024u
#define TOTAL_PER_MODULE     (32u << 10)
#define TOTAL_PER_PROCESS    (64u << 10)

static uint32_t power_of_two_below(uint64_t number)
{
	uint32_t power = 1;

	while (2ull * power <= number)
		power *= 2;
	return power;
}

/* Gives @number elements of @bytes each their place; false: more than 64 bits of them. */
static bool place(uint64_t *cursor, uint64_t number, uint64_t bytes, uint64_t *ret_at)
{
	uint64_t length, end;

	if (__builtin_mul_overflow(number, bytes, &length) ||
	    __builtin_add_overflow(*cursor, length, &end) ||
	    __builtin_add_overflow(end, REGION_ALIGN - 1, &end))
		return false;
	*ret_at = *cursor;
	*cursor = end & ~(uint64_t)(REGION_ALIGN - 1);
	return true;
}

/* Sets the offsets and the total of @header from its sizes. */
static bool lay_out(struct memory_header *header)
{
	const struct memory_sizes *sizes = &header->sizes;
	uint64_t at = 0, header_at;

	if (!place(&at, 1, sizeof(struct memory_header), &header_at) ||
	    !place(&at, sizes->nr_slots, sizeof(struct slot), &header->slots_at) ||
	    !place(&at, sizes->nr_packets, sizes->packet_bytes, &header->packets_at) ||
	    !place(&at, sizes->nr_nodes, sizeof(struct node), &header->nodes_at) ||
	    !place(&at, sizes->node_index_slots, sizeof(uint32_t), &header->node_index_at) ||
	    !place(&at, sizes->nr_codes, sizeof(struct code), &header->codes_at) ||
	    !place(&at, sizes->code_index_slots, sizeof(uint32_t), &header->code_index_at) ||
	    !place(&at, sizes->nr_modules, sizeof(struct module), &header->modules_at) ||
	    !place(&at, sizes->nr_processes, sizeof(struct process), &header->processes_at) ||
	    !place(&at, sizes->text_bytes, 1, &header->text_at))
		return false;
	header->total_bytes = at;
	return true;
}

static bool index_fits(uint32_t slots, uint32_t records)
{
	return slots != 0 && (slots & (slots - 1)) == 0 && slots / 2 >= records;
}

/* Everything that the code of this room relies on, besides the offsets. */
static bool sizes_are_sound(const struct memory_sizes *sizes)
{
	return sizes->nr_slots > 0 && sizes->nr_packets > 0 && sizes->nr_packets < UINT32_MAX &&
	       sizes->packet_bytes > 0 && sizes->packet_bytes % REGION_ALIGN == 0 &&
	       sizes->packet_bytes <= INT32_MAX && sizes->nr_nodes > 0 && sizes->nr_codes > 0 &&
	       sizes->nr_modules > 0 && index_fits(sizes->node_index_slots, sizes->nr_nodes) &&
	       index_fits(sizes->code_index_slots, sizes->nr_codes);
}

struct memory_sizes memory_sizes_for(uint64_t total_bytes)
{
	uint64_t total = total_bytes < MEMORY_BYTES_MAX ? total_bytes : MEMORY_BYTES_MAX;
	struct memory_header header = {0};
	struct memory_sizes *sizes = &header.sizes;

	total = total > MEMORY_BYTES_MIN ? total : MEMORY_BYTES_MIN;
	sizes->nr_slots = (uint32_t)(total / TOTAL_PER_SLOT);
	sizes->packet_bytes = PACKET_BYTES;
	sizes->nr_packets = (uint32_t)(total / TOTAL_PER_PACKET);
	sizes->node_index_slots = power_of_two_below(total / TOTAL_PER_NODE_INDEX);
	sizes->nr_nodes = sizes->node_index_slots / 2;
	sizes->code_index_slots = power_of_two_below(total / TOTAL_PER_CODE_INDEX);
	sizes->nr_codes = sizes->code_index_slots / 2;
	sizes->nr_modules = (uint32_t)(total / TOTAL_PER_MODULE);
	sizes->nr_processes = (uint32_t)(total / TOTAL_PER_PROCESS);
	lay_out(&header);
	sizes->text_bytes = (total - header.total_bytes) & ~(uint64_t)(REGION_ALIGN - 1);
	return *sizes;
}

static void set_pointers(struct memory *memory, void *base, const struct memory_header *layout)
{
	uint8_t *bytes = base;

	memory->header = base;
	memory->slots = (struct slot *)(bytes + layout->slots_at);
	memory->packets = bytes + layout->packets_at;
	memory->nodes = (struct node *)(bytes + layout->nodes_at);
	memory->node_index = (_Atomic uint32_t *)(bytes + layout->node_index_at);
	memory->codes = (struct code *)(bytes + layout->codes_at);
	memory->code_index = (_Atomic uint32_t *)(bytes + layout->code_index_at);
	memory->modules = (struct module *)(bytes + layout->modules_at);
	memory->processes = (struct process *)(bytes + layout->processes_at);
	memory->text = bytes + layout->text_at;
}

static int map_pages(int fd, const struct memory_header *layout, struct memory *ret_memory,
		     struct errbuf *err)
{
	void *base = mmap(NULL, layout->total_bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return errbuf_set(err, -errno,
				  "Cannot map the recording's memory of %llu bytes: %s",
				  (unsigned long long)layout->total_bytes, strerror(errno));
	/* What is ours is in no core dump of the program; without it a dump is larger. */
	(void)madvise(base, layout->total_bytes, MADV_DONTDUMP);
	set_pointers(ret_memory, base, layout);
	return 0;
}

static int make_file(uint64_t bytes, int *ret_fd, struct errbuf *err)
{
	int fd = memfd_create("pathprof", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	int error;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("pathprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return errbuf_set(err, -errno, "Cannot make the recording's memory: %s",
				  strerror(errno));
	if (ftruncate(fd, (off_t)bytes) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		error = errno;
		close(fd);
		return errbuf_set(err, -error,
				  "Cannot give the recording's memory its %llu bytes: %s",
				  (unsigned long long)bytes, strerror(error));
	}
	*ret_fd = fd;
	return 0;
}

/* Index 0 of nodes, codes and modules is reserved; the zeroed packets are the free list. */
static void start_header(struct memory_header *header, const struct memory_header *layout)
{
	header->version = MEMORY_VERSION;
	header->header_bytes = sizeof(struct memory_header);
	header->total_bytes = layout->total_bytes;
	header->sizes = layout->sizes;
	header->slots_at = layout->slots_at;
	header->packets_at = layout->packets_at;
	header->nodes_at = layout->nodes_at;
	header->node_index_at = layout->node_index_at;
	header->codes_at = layout->codes_at;
	header->code_index_at = layout->code_index_at;
	header->modules_at = layout->modules_at;
	header->processes_at = layout->processes_at;
	header->text_at = layout->text_at;
	atomic_store(&header->nodes_used, 1);
	atomic_store(&header->codes_used, 1);
	atomic_store(&header->modules_used, 1);
	atomic_store(&header->free_packets, 1);
	header->magic = MEMORY_MAGIC;
}

int memory_create(const struct memory_sizes *sizes, struct memory *ret_memory, int *ret_fd,
		  struct errbuf *err)
{
	struct memory_header layout = {.sizes = *sizes};
	int result, fd = -1;

	if (!sizes_are_sound(sizes) || !lay_out(&layout) || layout.total_bytes > INT64_MAX)
		return errbuf_set(err, -EINVAL, "The bounds of the recording's memory do not fit");
	result = make_file(layout.total_bytes, &fd, err);
	if (result < 0)
		return result;
	result = map_pages(fd, &layout, ret_memory, err);
	if (result < 0) {
		close(fd);
		return result;
	}
	start_header(ret_memory->header, &layout);
	*ret_fd = fd;
	return 0;
}

/* Is @header one that memory_create() wrote into a file of @file_bytes? */
static bool header_is_sound(const struct memory_header *header, uint64_t file_bytes)
{
	struct memory_header layout = {.sizes = header->sizes};

	return header->magic == MEMORY_MAGIC && header->version == MEMORY_VERSION &&
	       header->header_bytes == sizeof(struct memory_header) &&
	       sizes_are_sound(&header->sizes) && lay_out(&layout) &&
	       header->nr_events <= EVENTS_MAX && header->total_bytes == layout.total_bytes &&
	       file_bytes == layout.total_bytes && header->slots_at == layout.slots_at &&
	       header->packets_at == layout.packets_at && header->nodes_at == layout.nodes_at &&
	       header->node_index_at == layout.node_index_at &&
	       header->codes_at == layout.codes_at &&
	       header->code_index_at == layout.code_index_at &&
	       header->modules_at == layout.modules_at &&
	       header->processes_at == layout.processes_at && header->text_at == layout.text_at;
}

int memory_map(int fd, struct memory *ret_memory, struct errbuf *err)
{
	struct memory_header header;
	struct stat status;

	if (fstat(fd, &status) != 0)
		return errbuf_set(err, -errno, "Cannot look at the recording's memory: %s",
				  strerror(errno));
	if (!S_ISREG(status.st_mode) ||
	    pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    !header_is_sound(&header, (uint64_t)status.st_size))
		return errbuf_set(err, -EINVAL,
				  "The file is no recording's memory, or another version's");
	return map_pages(fd, &header, ret_memory, err);
}

void memory_unmap(struct memory *memory)
{
	if (memory->header)
		munmap(memory->header, memory->header->total_bytes);
	memset(memory, 0, sizeof(*memory));
}

void memory_prefault(struct memory *memory, unsigned int pages_per_region)
{
	const struct memory_header *header = memory->header;
	const uint64_t starts[] = {0,
				   header->slots_at,
				   header->packets_at,
				   header->nodes_at,
				   header->node_index_at,
				   header->codes_at,
				   header->code_index_at,
				   header->modules_at,
				   header->processes_at,
				   header->text_at,
				   header->total_bytes};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *base = (uint8_t *)memory->header;

	for (size_t i = 0; i + 1 < sizeof(starts) / sizeof(starts[0]); i++) {
		uint64_t start = starts[i] & ~(page - 1);
		uint64_t room = starts[i + 1] - start;
		uint64_t wanted = pages_per_region * page;

		/* EINVAL: a kernel before 5.14. The first ticks then fault, nothing else. */
		(void)madvise(base + start, wanted < room ? wanted : room, MADV_POPULATE_WRITE);
	}
}

/*
 * Makes what lies beyond the tail of a region ready: as much again as is used, within bounds, so
 * that a start costs little and a program that grows fast does not outrun it; and a bit on top,
 * so that the system calls are few.
 */
static void ready_region(void *region, uint64_t used, uint64_t bytes, uint64_t *ready)
{
	uint64_t ahead = used < AHEAD_MIN ? AHEAD_MIN : used < AHEAD_MAX ? used : AHEAD_MAX;
	uint64_t from = *ready & ~(uint64_t)(REGION_ALIGN - 1);
	uint64_t wanted = used + ahead < bytes ? used + ahead : bytes;

	if (*ready >= wanted)
		return;
	wanted = wanted + ahead / 2 < bytes ? wanted + ahead / 2 : bytes;
	(void)madvise((uint8_t *)region + from, wanted - from, MADV_POPULATE_WRITE);
	*ready = wanted;
}

static uint64_t used_of(_Atomic uint32_t *tail, uint32_t bound, uint64_t bytes_each)
{
	uint32_t used = atomic_load_explicit(tail, memory_order_relaxed);

	return (used < bound ? used : bound) * bytes_each;
}

void memory_prefault_ahead(struct memory *memory, struct memory_ahead *ahead)
{
	struct memory_header *header = memory->header;
	const struct memory_sizes *sizes = &header->sizes;
	uint64_t nodes = used_of(&header->nodes_used, sizes->nr_nodes, sizeof(struct node));
	uint64_t codes = used_of(&header->codes_used, sizes->nr_codes, sizeof(struct code));
	uint64_t text = atomic_load_explicit(&header->text_used, memory_order_relaxed);
	uint64_t index_bytes = sizes->code_index_slots * sizeof(uint32_t);

	ready_region(memory->nodes, nodes, sizes->nr_nodes * sizeof(struct node), &ahead->nodes);
	ready_region(memory->codes, codes, sizes->nr_codes * sizeof(struct code), &ahead->codes);
	ready_region(memory->text, text < sizes->text_bytes ? text : sizes->text_bytes,
		     sizes->text_bytes, &ahead->text);
	/* The index of codes is touched at random: all of it, once a program has shown some. */
	if (codes > AHEAD_CODES * sizeof(struct code))
		ready_region(memory->code_index, index_bytes, index_bytes, &ahead->code_index);
}
