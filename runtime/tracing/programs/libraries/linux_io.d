/*
 * Types of io's arguments. A bio is what a disk's driver is given, or the first of a request; arg1 is the disk, arg3 how
 * many bytes all of it has, arg4 whether it failed. What Linux does not tell is 0 or "<none>".
 */

inline int B_ERROR = 0x4;
inline int B_READ = 0x40;
inline int B_WRITE = 0x100;
inline int B_ASYNC = 0x400;

typedef struct bufinfo {
	int b_flags;
	size_t b_bcount;
	uintptr_t b_addr;
	uint64_t b_blkno;
	uint64_t b_lblkno;
	size_t b_resid;
	size_t b_bufsize;
	uintptr_t b_iodone;
	int b_error;
	dev_t b_edev;
} bufinfo_t;

translator bufinfo_t < struct bio *B > {
	b_flags = (B->bi_opf & 1 ? B_WRITE | (B->bi_opf & (1 << __REQ_SYNC) ? 0 : B_ASYNC) : B_READ) |
	    (arg4 ? B_ERROR : 0);
	b_bcount = arg3;
	b_addr = 0;
	b_blkno = B->bi_iter.bi_sector;
	b_lblkno = B->bi_iter.bi_sector;
	b_resid = arg4 ? arg3 : 0;
	b_bufsize = arg3;
	b_iodone = (uintptr_t)B->bi_end_io;
	b_error = arg4 ? EIO : 0;
	b_edev = ((struct gendisk *)arg1)->major << 20 | ((struct gendisk *)arg1)->first_minor;
};

typedef struct devinfo {
	int dev_major;
	int dev_minor;
	int dev_instance;
	string dev_name;
	string dev_statname;
	string dev_pathname;
} devinfo_t;

translator devinfo_t < struct gendisk *D > {
	dev_major = D->major;
	dev_minor = D->first_minor;
	dev_instance = 0;
	dev_name = stringof(D->disk_name);
	dev_statname = stringof(D->disk_name);
	dev_pathname = strjoin("/dev/", stringof(D->disk_name));
};

typedef struct fileinfo {
	string fi_name;
	string fi_dirname;
	string fi_pathname;
	int64_t fi_offset;
	string fi_fs;
	string fi_mount;
	int fi_oflags;
} fileinfo_t;

translator fileinfo_t < struct bio *B > {
	fi_name = "<none>";
	fi_dirname = "<none>";
	fi_pathname = "<none>";
	fi_offset = 0;
	fi_fs = "<none>";
	fi_mount = "<none>";
	fi_oflags = 0;
};
