# A repository with branches, merges, packs and attributes.
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@d
export GIT_AUTHOR_DATE='2001-01-01T00:00:00Z' GIT_COMMITTER_DATE='2001-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
git init -q -b main repository; cd repository; git config gc.auto 0; git config core.trustctime false
i=0; while [ $i -lt 8 ]; do i=$((i + 1)); head -n $((i * 300)) ../text > text; cp ../work.c file$i; git add .; git commit -q -m "number $i"; done
git checkout -q -b side HEAD~3; sed -i s/probe/PROBE/ text; git commit -qam side; git checkout -q main
git merge -q side -m merged || { git diff | git hash-object --stdin; git checkout --theirs text; git commit -qam merged; }
git log --stat --oneline | git hash-object --stdin; git repack -q -a -d -f --threads=1; git fsck --full; git verify-pack -v .git/objects/pack/*.idx | sort | git hash-object --stdin
git blame -s text | git hash-object --stdin; git diff --word-diff HEAD~4 HEAD | git hash-object --stdin; git archive HEAD | git hash-object --stdin
git grep -n -E 'tramp(oline)? [0-9]+' | wc -l; git rev-parse HEAD; git log --graph --format=%h%d%s; git ls-tree -r HEAD
cd ..; git clone -q repository copy; git -C copy rev-parse HEAD; rm -rf repository copy
