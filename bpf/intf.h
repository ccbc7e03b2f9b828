/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __TEMPONET_INTF_H
#define __TEMPONET_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
#endif

#define TEMPONET_HINT_TYPES_ONLY
#include "../include/temponet_hint.h"

#endif
