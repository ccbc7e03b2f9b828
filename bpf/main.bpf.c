/* SPDX-License-Identifier: GPL-2.0 */
#include <scx/common.bpf.h>
#include "intf.h"
char _license[] SEC("license") = "GPL";
UEI_DEFINE(uei);
void BPF_STRUCT_OPS(temponet_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}
SCX_OPS_DEFINE(temponet_ops, .exit = (void *)temponet_exit, .name = "temponet");
