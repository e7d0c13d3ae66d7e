"""What the tokens of services look like: prefixes, alphabets and lengths, as the services and public scanners say."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain

__all__ = ["ADDRESS_PASSWORD", "PRIVATE_KEY", "SHAPES", "kind_patterns", "token_pattern"]

# The kinds of tokens with the regular expressions that match them, without the separators around them.
SHAPES: dict[str, tuple[str, ...]] = {
    "a GitHub token": (r"gh[pousr]_\w{20,}", r"github_pat_\w{20,}"),
    "a GitLab token": (
        r"gl(?:pat|dt|rt|rtr|ptt|cbt|ffct|ft|imt|agent|soat|oas|wt)-[\w.-]{20,}",
        r"GR1348941[\w-]{20,}",
        r"_gitlab_session=[0-9a-z]{32}",
    ),
    "a token of a registry": (
        r"npm_[A-Za-z0-9]{30,}",
        r"pypi-[\w-]{50,}",
        r"rubygems_[a-f0-9]{48}",
        r"(?i:CLOJARS_[a-z0-9]{60})",
        r"oy2[a-z0-9]{43}",
        r"cio[A-Za-z0-9]{32}",
        r"dckr_(?:pat|oat)_[\w-]{20,}",
        r"AKCp[A-Za-z0-9]{60,}",
        r"cmVmd[A-Za-z0-9]{59}",
    ),
    "an AWS key": (
        r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
        r"ABSK[A-Za-z0-9+/]{100,}=*",
        r"bedrock-api-key-[A-Za-z0-9+/=]{20,}",
    ),
    "an API key": (
        r"(?:sk|pk|rk)[-_][\w-]{20,}",
        r"(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}",
        r"whsec_[A-Za-z0-9+/=]{24,}",
        r"(?:sk|pk)\.eyJ[\w-]{20,}(?:\.[\w-]+)*",
        r"pk\.[a-z0-9]{60}\.[a-z0-9]{22}",
        r"AIza[\w-]{30,}",
        r"GOCSPX-[\w-]{20,}",
        r"ya29\.[\w-]{20,}",
        r"(?:hf|api_org)_[A-Za-z0-9]{30,}",
        r"(?:pplx|xai|nvapi|tvly)-[\w-]{30,}",
        r"(?:gsk|r8|jina|lsv2_pt|lsv2_sk|e2b|tgp_v1)_[\w-]{30,}",
        r"(?:phx|pnu|pnb|rdme|tfp|figd|nfp|rnd|napi|sbp|bkua|CCIPAT|CCIPRJ)_[\w.=-]{30,}",
        r"sb_secret_[\w-]{20,}",
    ),
    "a Slack token": (
        r"xox[abeoprs](?:\.xox[bp])?-[\w-]{8,}",
        r"(?i:xapp-\d-[a-z0-9]+-\d+-[a-z0-9]+)",
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/)[\w+/-]{30,}",
    ),
    "a token of a chat service": (
        r"(?:discord(?:app)?\.com/api/webhooks/)\d+/[\w-]{40,}",
        r"[a-z0-9-]{1,60}\.webhook\.office\.com/webhookb2/[\w@/-]{60,}",
        r"(?=[\w.-]{0,76}\d)[MNO][\w-]{22,28}\.[\w-]{6,7}\.[\w-]{27,40}",
        r"\d{6,12}:A[\w-]{34}",
    ),
    "a token of a cloud": (
        r"do[opr]_v1_[a-f0-9]{64}",
        r"dapi[a-f0-9]{32}(?:-\d)?",
        r"hv[bsr]\.[\w-]{20,}",
        r"(?i:[a-z0-9]{14}\.atlasv1\.[\w=-]{60,})",
        r"pul-[a-f0-9]{40}",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}",
        r"fo1_[\w-]{43}",
        r"fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}=*",
        r"pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}",
        r"LTAI[A-Za-z0-9]{17,}",
        r"AKID[A-Za-z0-9]{32}",
        r"[\w~.]{3}\dQ~[\w~.-]{31,34}",
        r"sha256~[\w-]{43}",
        r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
        r"HRKU-AA[\w-]{58}",
        r"4b1d[A-Za-z0-9]{38}",
        r"mdb_sa_sk_[\w-]{20,}",
        r"t1\.[\w-]{10,4000}+=*\.[\w-]{86}=*",
        r"AQVN[\w-]{35,}",
        r"YC[\w-]{38}",
    ),
    "a token of a service": (
        r"gls?[ac]_[A-Za-z0-9+/_]{32,}=*",
        r"eyJrIjoi[A-Za-z0-9]{70,}=*",
        r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}",
        r"ntn_[A-Za-z0-9]{40,}",
        r"secret_[A-Za-z0-9]{43}",
        r"PMAK-[A-Za-z0-9-]{50,}",
        r"SG\.[\w=.-]{60,}",
        r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}",
        r"(?:pub)?key-[a-f0-9]{32}",
        r"[a-f0-9]{32}-us\d{1,2}",
        r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
        r"sq0(?:atp|csp|idp)-[\w-]{22,}",
        r"EAA[A-Z][\w-]{22,}",
        r"\d{15,16}[|%][\w-]{27,40}",
        r"shippo_(?:live|test)_[a-fA-F0-9]{40}",
        r"EZ[AT]K[A-Za-z0-9]{54}",
        r"duffel_(?:test|live)_[\w=-]{43}",
        r"dt0[a-z]\d\d\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",
        r"NR(?:AK|II|JS|AL|RA)-[\w-]{19,}",
        r"sntry[su]_[A-Za-z0-9+/=_]{40,}",
        r"AT(?:ATT3|CTT3|BB)[\w=-]{28,}",
        r"SK[0-9a-fA-F]{32}",
        r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
        r"(?:pat|sat)\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
        r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}",
        r"sq[upa]_[A-Za-z0-9]{40}",
        r"API-[A-Z0-9]{26}",
        r"ico-[A-Za-z0-9]{32}",
        r"fio-u-[\w=-]{64}",
        r"ops_eyJ[A-Za-z0-9+/]{100,}=*",
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
        r"p8e-[A-Za-z0-9]{32}",
        r"s-s4t2(?:ud|af)-[a-f0-9]{64}",
        r"sm_[aps]at_[A-Za-z0-9]{16}",
        r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
        r"FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?",
        r"dnkey-[\w=-]{26}-[\w=-]{52}",
        r"sl\.[\w=-]{100,}",
        r"tk-us-[\w-]{48}",
        r"A{20}[A-Za-z0-9%]{60,}",
        r"(?:live|test)_(?:pub_)?[a-f0-9]{31,35}",
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[\w+/=-]{30,}",
        r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
    ),
    "a JSON web token": (
        r"e[yw][A-Za-z0-9_-]{8,4000}+\.e[yw][\w/-]{8,}+\.[\w/=-]*",
        r"eyJ[\w-]{8,4000}+(?:\.[\w-]*+){4}",
    ),
}

PRIVATE_KEY = r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
ADDRESS_PASSWORD = r"\b[a-z][\w+.-]{0,30}://[^\s/:@]{0,200}:[^\s/@]{1,1000}@"


_WORD_START = "(?<![A-Za-z0-9])"


@cache
def token_pattern() -> re.Pattern[str]:
    """Return the pattern of all tokens, each at the start of a word."""
    alternatives = "|".join(chain.from_iterable(SHAPES.values()))
    return re.compile(f"{_WORD_START}(?:{alternatives})")


@cache
def kind_patterns(*, inside_words: bool) -> dict[str, re.Pattern[str]]:
    """Return the pattern of each kind of token.

    Args:
        inside_words: whether a token counts that is glued to what stands before it. GitHub's always do.
    """
    patterns: dict[str, re.Pattern[str]] = {}
    for kind, shapes in SHAPES.items():
        start = _WORD_START
        if inside_words or kind == "a GitHub token":
            start = ""
        patterns[kind] = re.compile(f"{start}(?:{'|'.join(shapes)})")
    return patterns
