"""A pod whose container is never made beside a replica that serves: what it lacks stands in its events, and no memory is short."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import UP, first, minute

DESCRIBED = """\
Name:             chat-5d9c6b7f4-q2w8z
Namespace:        desk
Node:             n-7/10.8.0.7
Status:           Pending
Containers:
  engine:
    Container ID:
    Image:          vllm/vllm-openai:v0.12.0
    Command:
      vllm
      serve
      Qwen/Qwen3-8B
    State:          Waiting
      Reason:       {state}
    Ready:          False
    Restart Count:  0
    Limits:
      nvidia.com/gpu:  1
Events:
  Type     Reason              Age                From                     Message
  ----     ------              ----               ----                     -------
  Normal   Scheduled           31m                default-scheduler        Successfully assigned desk/chat-5d9c6b7f4-q2w8z to n-7
{events}"""
SERVES = UP + "".join(minute(at, 3, 0, 12.5) for at in range(1, 9))


@pytest.mark.parametrize(
    ("state", "events"),
    [
        ("ContainerCreating", "  Warning  FailedAttachVolume  30m                attachdetach-controller  Multi-Attach error for volume \"pvc-41\" Volume is already exclusively attached to one node\n"),
        ("ContainerCreating", "  Warning  FailedMount         2m (x13 over 30m)  kubelet                  MountVolume.SetUp failed for volume \"hf-token\" : secret \"hf-token\" not found\n"),
        ("ImagePullBackOff", "  Warning  Failed              2m (x5 over 30m)   kubelet                  Failed to pull image \"vllm/vllm-openai:v0.12.0\": not found\n"),
        ("CreateContainerConfigError", "  Warning  Failed              2m (x5 over 30m)   kubelet                  Error: secret \"api-keys\" not found\n"),
    ],
)  # fmt: skip
def test_what_the_pod_lacks_is_no_memory(tmp_path: Path, state: str, events: str) -> None:
    files = {"vllm.log": SERVES, "pod.txt": DESCRIBED.format(state=state, events=events)}
    cause, sure = first(tmp_path, files)
    assert cause == "not-memory" and sure > 0.6


def test_a_pod_that_is_being_made_lacks_nothing(tmp_path: Path) -> None:
    events = "  Normal   Pulling             20s                kubelet                  Pulling image \"vllm/vllm-openai:v0.12.0\"\n"  # fmt: skip
    files = {"vllm.log": SERVES, "pod.txt": DESCRIBED.format(state="ContainerCreating", events=events)}
    assert first(tmp_path, files)[0] == "healthy"
