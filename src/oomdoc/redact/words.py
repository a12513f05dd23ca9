"""What names of fields say of their values, and which words are nobody's name. Data only.

Names of fields are compared folded: lower case, without dots, dashes, underscores and slashes.
"""

from __future__ import annotations

import re
from functools import lru_cache

_FOLD = re.compile(r"[_.\-/@ ]")


def fold(name: str) -> str:
    """A field's name without case and separators.

    >>> fold("gen_ai.prompt"), fold("X-API-Key"), fold("nodeName")
    ('genaiprompt', 'xapikey', 'nodename')
    """
    return _FOLD.sub("", name).lower()


def _set(text: str) -> frozenset[str]:
    return frozenset(map(fold, text.split()))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONTENT = _set(
    """prompt prompts completion completions content contents system_prompt negative_prompt user_prompt query question
    answer answers instruction instructions generated_text generated_texts response_text output_text input_text
    prompt_text user_message assistant_message system_message messages chat_messages conversation gen_ai.prompt
    gen_ai.completion gen_ai.input.messages gen_ai.output.messages gen_ai.system_instructions llm.prompts
    llm.completions input.value output.value traceloop.entity.input traceloop.entity.output document documents
    choices candidates reasoning_content tool_calls arguments image_url input_audio audio_url video_url
    prompt_token_ids output_token_ids input_ids output_ids token_ids prompt_tokens_details_text multi_modal_data
    conversations queries passages tools functions top_logprobs user_input user_query prompt_text guided_choice
    system prefix suffix guided_json guided_regex stop_strings chat_history history utterance transcript snippet"""
) - _set("system prefix suffix history choices")
"""Values that people or the model wrote."""
WEAK_CONTENT = _set(
    "text texts input inputs output outputs response responses result choices history value body suffix tokens "
    "context contexts docs text_1 text_2"
)
"""The same, where the value is quoted: as bare words these are names of other things."""
IDS = _set("prompt_token_ids prompttokenids output_token_ids input_ids output_ids token_ids")
"""Lists of token ids: text by another name. Their length is kept."""
USER = _set(
    """user users username user_name userid user_id login login_name logname owner author created_by updated_by
    submitted_by account_name end_user enduser.id enduser end_user_id slurm_job_user sudo_user remote_user uid_name
    x-user x-user-id x-forwarded-user preferred_username real_name full_name first_name last_name display_name
    given_name family_name user.name user.id user.email email e-mail mail email_address contact maintainer requester
    group_id requested_by requester_id assignee reporter sub approver approved_by submitter uploader creator recipient sender committer phone phone_number mobile telephone"""
)
HOST = _set(
    """host hosts hostname host_name hostnames node nodename node_name nodelist nodes server_name server_address
    machine machine_name fqdn instance_id _hostname slurmd_nodename slurm_job_nodelist slurm_nodelist
    slurm_submit_host kubernetes.io/hostname k8s.node.name host.name host.id net.peer.name net.host.name
    server.address client.address peer.hostname computer master_addr ray_address nominated_node_name
    head_node worker_node remote_host node_id_name exported_instance Hostname source_host syslog_host exported_host
    instance kubernetes_node kube_node computer_name logon_server targets batch_host compute.googleapis.com/resource_name"""
)
TENANT = _set(
    """tenant tenants tenant_id tenant_name org orgs org_id org_name organization organization_id organisation
    organisation_id customer customer_id customer_name client_id client_name client company team team_id team_name
    teams account account_id project project_id project_name workspace workspace_id namespace namespaces
    namespace_name k8s.namespace.name exported_namespace department business_unit cost_center api_key_alias
    key_alias api_key_name x-tenant x-tenant-id x-org-id x-scope-orgid subscription subscription_id billing_id billing_account openai-organization
    cluster cluster_name kube_cluster_name k8s.cluster.name kube_namespace kubernetes_namespace user_domain wandb_entity"""
)
_SECRET = re.compile(
    r"(?:apikey|apitoken|accesskey|accesskeyid|secretkey|secretaccesskey|privatekey|sharedkey|accountkey|signingkey|"
    r"encryptionkey|masterkey|authkey|licensekey|password|passwd|passphrase|pwd|secret|clientsecret|credential|credentials|"
    r"token|hubtoken|authtoken|bearer|authorization|auth|cookie|setcookie|signature|sessiontoken|xamzcredential|sig|"
    r"apikeys|tokens?list|passwords|secrets|accesskeys|(?:access|auth|api|hf|refresh|bearer|session|user|bot|service|admin)tokens|privatekeyid|clientkeydata|clientcertificatedata|certificateauthoritydata|bindpw|passcode|salt|signaturevalue|"
    r"pw|pass|secretkeybase|passwort|kennwort|contrasena|motdepasse|senha)"
)
_SECRET_ENDS = ("apikey", "token", "secret", "password", "passwd", "passphrase", "accesskey", "accesskeyid", "secretkey",
                "privatekey", "accountkey", "sharedkey", "credential", "credentials", "signature", "authkey", "signingkey",
                "iamkey", "cloudkey", "hmackey", "sshkey", "hfkey", "openaikey", "masterkey", "encryptionkey", "licensekey",
                "subscriptionkey", "authtok", "servicekey", "routingkey", "integrationkey")  # fmt: skip
_TOKEN_OF_TEXT = re.compile(
    r"(?:.*[_.\-/@ ]|.*[a-z](?=[A-Z])|)(?i:(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio|stop|start|end|per|next|first|last|draft|"
    r"bonus|num|n|max|min|think|special|placeholder|chat|added|prompt|output|input|generated|decode|prefill|sampled|each|one|a|the|"
    r"every|new|bytes|s)[_.\-/@ ]?token)"
)
"""Tokens of text, not of access: `eos_token`, `time_per_output_token`. The word before is a whole one: `grafana_token` is no `a_token`."""
_SECRET_PART = re.compile(r"(?:.*[_.\-](?<!ward[_.\-])|.*[a-z](?=[A-Z]))(?i:pass|pw|pwd|passcode|psk|auth|salt)")
"""Short words that are a secret as the end of a longer name: `DB_PASS`, `redisAuth`."""
_USER_PART = re.compile(r".*(?:[_.\-]user|user[_.-]?name)", re.I)
"""`POSTGRES_USER`, `MLFLOW_TRACKING_USERNAME`."""


_LONGEST_NAME = 200
_VARIANT = re.compile(
    r"([A-Za-z][\w.-]*?[A-Za-z])(?:[_.-]?\d{1,3}|[_.-](?:OLD|NEW|PRIMARY|SECONDARY|BACKUP|PROD|PRD|STAGING|STG|TEST|DEV|LIVE|QA|BASE64|B64|PLAIN|VALUE|DEFAULT|LOCAL|INTERNAL|EXTERNAL)){1,2}",
    re.I,
)
"""One of several variables of a kind: `API_KEY_1`, `DB_PASSWORD_PROD`."""


@lru_cache(maxsize=8192)
def kind_of(name: str) -> str | None:
    """What a field's value is: prompt, weak (prompt where quoted), ids, secret, user, host, tenant; None for all others.

    >>> [kind_of(name) for name in ("messages", "HF_TOKEN", "eos_token", "nodeName", "Tenant-ID", "prompt_tokens")]
    ['prompt', 'secret', None, 'host', 'tenant', None]
    """
    if len(name) > _LONGEST_NAME:
        return None
    if numbered := _VARIANT.fullmatch(name):
        name = numbered[1]
    key = fold(name)
    last = fold(re.split(r"[./]", name)[-1])
    for kind, names in (
        ("ids", IDS), ("prompt", CONTENT), ("user", USER), ("host", HOST), ("tenant", TENANT), ("weak", WEAK_CONTENT),
    ):  # fmt: skip
        if key in names:
            return kind
    if _SECRET.fullmatch(key) or (key.endswith(_SECRET_ENDS) and not _TOKEN_OF_TEXT.fullmatch(name)):
        return "secret"
    if _SECRET_PART.fullmatch(name):
        return "secret"
    if _USER_PART.fullmatch(name):
        return "user"
    if last != key and last in CONTENT:
        return "prompt"
    if last != key and last in HOST | TENANT | USER and last not in ("node", "host", "client", "mail", "project"):
        return kind_of(last)
    return None


NOBODY = _words(
    """none null nil nan true false yes no on off unset unknown undefined default empty any all auto local localhost
    root nobody daemon system admin user users users: app vllm runner ubuntu ec2-user jovyan node nodes host hosts server
    client worker master head main test public shared global anonymous guest kube-system kube-public kube-node-lease
    gpu-operator monitoring prometheus kubernetes docker container containerd systemd kernel syslog stdout stderr info
    warning warn error critical debug trace notice fatal log message string str int float bool object array list dict
    prod production staging dev development cuda gpu cpu tpu rocm hip meta disk memory model engine core llm ray torch
    python bash sh nvidia amd intel assistant tool function developer me self team tenant org organization organisation customer account
    project namespace workspace redacted hidden masked removed private internal external http https tcp udp grpc
    name type kind value values labels status spec data items metadata annotations required optional running pending
    failed succeeded completed active ready notready inference serving llm-serving models model-server openai huggingface
    n/a -- - * | > . .. 0 1 json text utf-8 etcd api apis v1 shm tmp var opt srv mnt home data cache workspace scratch"""
)
"""Values that are nobody's name, whatever field they stand in."""
GENERIC = re.compile(
    r"(?:gpu|cuda|rank|worker|node|tp|pp|dp|ep|core|engine|engine_?core|server|replica|replicas|pod|device|instance|host|"
    r"process|client|vllm|llm|container|numa|nic|mlx5?|user|tenant|team)[-_]?\d{0,4}"
)
"""Names that say what a thing is, not whose: replaced where a field holds them, not wherever the word stands."""
ROLES = _set("role type object model finish_reason stop_reason index id tool_call_id created usage from")
"""Fields inside messages whose values are not what somebody wrote."""
PUBLIC = _words(
    """huggingface.co hf.co github.com githubusercontent.com pytorch.org vllm.ai python.org pypi.org pythonhosted.org
    docker.io docker.com nvcr.io ghcr.io quay.io gcr.io k8s.io kubernetes.io x-k8s.io nvidia.com amd.com intel.com
    google.com googleapis.com gke.io amazonaws.com openshift.io openshift.com redhat.com prometheus.io istio.io
    grafana.com opentelemetry.io ray.io anyscale.com openai.com anthropic.com apache.org w3.org ubuntu.com debian.org
    kernel.org freedesktop.org helm.sh keda.sh karpenter.sh troubleshoot.sh replicated.com cert-manager.io projectcalico.org
    cilium.io knative.dev kserve.io kubeflow.org llm-d.ai run.ai volcano.sh bentoml.com sky.io azure.com microsoft.com readthedocs.io jaegertracing.io jsonschema.org
    json-schema.org example.com example.org schema.org tensorflow.org modelscope.cn gnu.org mozilla.org gitlab.com"""
)
"""Domains that everybody's logs name: registries, labels of Kubernetes, documentation."""
HOME_OF_NOBODY = _words(
    "root ubuntu ec2-user vllm app runner user users nobody jovyan shared public default node nonroot ray admin centos "
    "debian appuser worker service www-data default_user workspace linuxbrew"
)
"""Folders below /home that images come with."""
SPOKEN_BY_ENGINES = _set(
    """message msg log line error errors err exception exc reason reasons detail details status state cause warning warnings event
    title image command cmd args argv entrypoint env options config flags version device product driver help type phase condition
    stack stacktrace traceback exc_info exc_text func function file filename path url module logger level levelname key
    non_default_args text_payload textPayload MESSAGE @message note category label model user_agent useragent request_line
    gpu_name name modelname cuda_version driver_version lasttransitionmessage threshold expr expression format columns cpu processor
    finish_reason stop_reason exit_reason termination_message terminationmessage pretty_name prettyname summary annotation metric"""
)
"""Fields in which engines, drivers and clusters say something themselves: several words there are no prompt."""
MANY_VALUES = _set("api_key api_keys api-keys tokens passwords secrets allowed_keys")
"""Options that take several values: all of them up to the next option."""
